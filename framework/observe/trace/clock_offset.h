// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The offset to add to this rank's clock to get the clock of rank 0. The error is at most half of the round trip.
struct ClockOffset {
  std::int64_t ns = 0;
  std::int64_t round_trip_ns = 0;  // round trip of the fastest ping; 0 if the ranks share a clock
};

/// Estimates the offset as NTP does (Mills 1991, "Internet time synchronization"): the fastest of 16 pings determines
/// it. Rank 0 handles the other ranks one after the other. Collective; rank 0 gets 0.
ClockOffset estimate_clock_offset(Communicator& group, const std::function<std::int64_t()>& now_ns);

/// Does the same for monotonic_ns(). Returns exactly 0 if all ranks share this clock, because they run on the same host
/// since the same boot. Collective.
ClockOffset monotonic_clock_offset(Communicator& group);

}  // namespace phalanx
