// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/own_picture.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "framework/base/environment.h"
#include "launch/failure/failure.h"

namespace phalanx {
namespace {

double seconds_of(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

RankPicture OwnPicture::take(const std::vector<FlightRecorder::Record>& records, double waiting_since) {
  const double now = failure_time();
  RankPicture picture{.rank = rank_,
                      .host = host_name(),
                      .process = ::getpid(),
                      .state = RankPicture::Process::kRuns,
                      .taken = now,
                      .dataset = dataset_,
                      .waiting_since = waiting_since};
  // All events of the recorder are in the past, which bounds the time of its start.
  for (const auto& record : records) {
    const auto latest = std::max({record.launched_ns, record.started_ns, record.finished_ns});
    recorder_start_ = std::min(recorder_start_, now - seconds_of(latest));
  }
  const auto time = [&](std::int64_t ns) { return ns == 0 ? 0 : recorder_start_ + seconds_of(ns); };
  const std::size_t skipped = records.size() - std::min(records.size(), kOperations);
  for (auto record = records.begin() + static_cast<std::ptrdiff_t>(skipped); record != records.end(); ++record) {
    picture.operations.push_back({.number = record->number,
                                  .sequence = record->sequence,
                                  .group = record->group,
                                  .op = std::string(to_string(record->call.op)),
                                  .call = describe(record->call),
                                  .what = names_ == nullptr ? "" : names_->of(record->call),
                                  .place = record->place,
                                  .peer = record->call.peer,
                                  .tag = record->call.tag,
                                  .state = std::string(to_string(record->state)),
                                  .launched = time(record->launched_ns),
                                  .started = time(record->started_ns),
                                  .finished = time(record->finished_ns)});
  }
  return picture;
}

}  // namespace phalanx
