// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "framework/comm/communicator.h"

namespace phalanx {

/// What to add to this rank's clock to get that of rank 0. Wrong by at most half of the round trip.
struct ClockOffset {
  std::int64_t ns = 0;
  std::int64_t round_trip_ns = 0;  // of the fastest ping; 0 where the clock is the same
};

/// Estimates it as NTP does (Mills 1991, "Internet time synchronization"): of several pings the fastest counts. Takes
/// 16 pings for each rank in turn. Collective; rank 0 gets 0.
ClockOffset estimate_clock_offset(Communicator& group, const std::function<std::int64_t()>& now_ns);

/// The same for monotonic_ns(), which ranks of one host (of one boot of it) share: for them the offset is 0 exactly.
/// Collective.
ClockOffset monotonic_clock_offset(Communicator& group);

}  // namespace phalanx
