// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/time.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "framework/base/config/no_fields.h"
#include "framework/comm/operations/measured_inputs.h"

namespace phalanx {

Metrics TimeMeter::take(Communicator& group) {
  const double seconds = std::chrono::duration<double>(now_() - start_).count();
  const at::Tensor longest = at::empty({2}, at::kDouble);
  auto* metric = longest.data_ptr<double>();
  metric[0] = seconds;
  metric[1] = batches_ > 0 ? seconds / static_cast<double>(batches_) : 0;
  const MeasuredInputs measured;
  group.all_reduce(longest, Reduction::kMax).wait();
  start_ = now_();
  batches_ = 0;
  return {{"total_seconds", metric[0]}, {"seconds_per_batch", metric[1]}};
}

// The slowest rank determines the restored state too.
void TimeMeter::merge_state(const State& state) {
  const auto* saved = state.at(0).data_ptr<double>();
  const auto age = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(saved[0]));
  start_ = std::min(start_, now_() - age);
  batches_ += static_cast<std::int64_t>(saved[1]);
}

Meter::State TimeMeter::state() {
  at::Tensor all = at::empty({2}, at::kDouble);
  all.data_ptr<double>()[0] = std::chrono::duration<double>(now_() - start_).count();
  all.data_ptr<double>()[1] = static_cast<double>(batches_);
  return {all};
}

namespace {

const bool time_registered =
    Meters::global().add<NoFields>("time", "seconds since the last report and per batch, on the slowest rank",
                                   [](const NoFields&) { return std::make_unique<TimeMeter>(); });

}  // namespace
}  // namespace phalanx
