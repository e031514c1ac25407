// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/trace/clock_offset.h"

#include <ATen/ops/empty.h>

#include <functional>
#include <string>

#include "framework/base/files.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/observe/monotonic_clock.h"

namespace phalanx {
namespace {

constexpr int kPings = 16;

void answer_pings(Communicator& group, int peer, const std::function<std::int64_t()>& now_ns) {
  at::Tensor ping = at::empty({1}, at::kLong), answer = at::empty({2}, at::kLong);
  auto* times = answer.data_ptr<std::int64_t>();
  for (int i = 0; i < kPings; ++i) {
    group.recv(ping, peer, kMaxTag).wait();
    times[0] = now_ns();
    times[1] = now_ns();
    group.send(answer, peer, kMaxTag).wait();
  }
}

ClockOffset ping(Communicator& group, const std::function<std::int64_t()>& now_ns) {
  at::Tensor ping = at::empty({1}, at::kLong), answer = at::empty({2}, at::kLong);
  const auto* there = answer.data_ptr<std::int64_t>();
  ClockOffset best{.ns = 0, .round_trip_ns = -1};
  for (int i = 0; i < kPings; ++i) {
    const std::int64_t sent = now_ns();
    group.send(ping, 0, kMaxTag).wait();
    group.recv(answer, 0, kMaxTag).wait();
    const std::int64_t received = now_ns();
    const std::int64_t round_trip = (received - sent) - (there[1] - there[0]);
    if (best.round_trip_ns >= 0 && round_trip >= best.round_trip_ns) continue;
    best = {.ns = ((there[0] - sent) + (there[1] - received)) / 2, .round_trip_ns = round_trip};
  }
  return best;
}

// CLOCK_MONOTONIC starts at boot, so ranks that see the same boot share a clock.
std::int64_t boot() {
  return static_cast<std::int64_t>(std::hash<std::string>{}(read_file("/proc/sys/kernel/random/boot_id")));
}

bool all_share_a_clock(Communicator& group) {
  at::Tensor mine = at::empty({1}, at::kLong), all = at::empty({group.size()}, at::kLong);
  mine.data_ptr<std::int64_t>()[0] = boot();
  const MeasuredInputs measured;  // of this host
  group.all_gather(all, mine).wait();
  const auto* boots = all.data_ptr<std::int64_t>();
  for (int rank = 1; rank < group.size(); ++rank) {
    if (boots[rank] != boots[0]) return false;
  }
  return true;
}

}  // namespace

ClockOffset estimate_clock_offset(Communicator& group, const std::function<std::int64_t()>& now_ns) {
  const MeasuredInputs measured;
  if (group.rank() != 0) return ping(group, now_ns);
  for (int peer = 1; peer < group.size(); ++peer) answer_pings(group, peer, now_ns);
  return {};
}

ClockOffset monotonic_clock_offset(Communicator& group) {
  return all_share_a_clock(group) ? ClockOffset{} : estimate_clock_offset(group, monotonic_ns);
}

}  // namespace phalanx
