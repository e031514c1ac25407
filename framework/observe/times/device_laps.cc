// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/times/device_laps.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "framework/observe/monotonic_clock.h"

namespace phalanx {
namespace {

constexpr std::int64_t kLongestInterval = 17;    // a prime
constexpr std::size_t kManyBorders = 2048;       // of a hundred steps or more
constexpr std::int64_t kLongStepNs = 4'000'000;  // the cost of measuring is 1 % of it

}  // namespace

void DeviceLaps::lap(Phase phase) {
  if (measures_) mark(phase);
}

void DeviceLaps::skip() {
  if (measures_) mark(std::nullopt);
}

void DeviceLaps::mark(std::optional<Phase> ends) {
  if (spare_.empty()) {
    spare_.emplace_back(device_.type(),
                        c10::EventFlag::BACKEND_DEFAULT);  // which, unlike LibTorch's default, has times
  }
  c10::Event event = std::move(spare_.back());
  spare_.pop_back();
  event.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  borders_.push_back({.event = std::move(event), .ends = ends});
}

void DeviceLaps::end_step() {
  ++since_;
  const std::int64_t now = monotonic_ns(), step = now - std::exchange(step_began_ns_, now);
  if (measures_) {
    if (!borders_.empty()) borders_.back().steps = since_;
    since_ = 0;
    interval_ = std::clamp<std::int64_t>(kLongStepNs / std::max<std::int64_t>(step, 1), 1, kLongestInterval);
  }
  const bool measured = std::exchange(measures_, since_ + 1 >= interval_);
  if (measures_ && !measured) mark(std::nullopt);
  if (borders_.size() > kManyBorders) collect();  // no caller asks for the total
}

const PhaseTimes& DeviceLaps::total() {
  collect();
  return total_;
}

void DeviceLaps::collect() {
  while (borders_.size() > 1 && borders_[1].event.query()) {
    const Border& border = borders_[1];
    if (border.ends) {
      const double milliseconds = borders_[0].event.elapsedTime(border.event);
      of_step_[static_cast<std::size_t>(*border.ends)] += milliseconds * 1e-3;
    }
    if (border.steps > 0) {
      for (std::size_t i = 0; i < kPhases; ++i) total_.seconds[i] += static_cast<double>(border.steps) * of_step_[i];
      total_.steps += border.steps;
      of_step_ = {};
    }
    spare_.push_back(std::move(borders_.front().event));
    borders_.pop_front();
  }
}

void DeviceLaps::synchronize() {
  if (!borders_.empty()) borders_.back().event.synchronize();
}

}  // namespace phalanx
