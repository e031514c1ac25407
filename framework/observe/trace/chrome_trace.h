// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// An interval of time that something took on one rank.
struct TraceEvent {
  std::string name;
  std::string lane;                       // row in which it is shown; events of a lane are disjoint or nested
  std::int64_t begin_ns = 0, end_ns = 0;  // times of monotonic_ns()
  std::vector<std::pair<std::string, std::string>> details{};  // shown when the event is selected
};

/// One rank's part of a trace.
struct RankTrace {
  int rank = 0;
  std::string host;
  std::int64_t clock_offset_ns = 0;  // added to all times; see ClockOffset
  std::int64_t origin_ns = 0;        // start of the trace's time, on the common clock
  std::vector<std::string> lanes{};  // from top to bottom
  std::vector<TraceEvent> events{};
};

/// Returns the rank's events in the Trace Event Format (Google, 2016): one process for the rank, one thread per lane,
/// complete events in microseconds. The list has no brackets, so the lists of several ranks can be joined.
std::string to_chrome_events(const RankTrace& trace);

/// Joins such lists to a file for Perfetto and chrome://tracing.
std::string to_chrome_trace(const std::vector<std::string>& ranks);

}  // namespace phalanx
