// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Something that took a while on one rank.
struct TraceEvent {
  std::string name;
  std::string lane;                       // its row; events of a lane are disjoint or lie within one another
  std::int64_t begin_ns = 0, end_ns = 0;  // of monotonic_ns()
  std::vector<std::pair<std::string, std::string>> details{};  // what a click on it shows
};

/// One rank's part of a trace.
struct RankTrace {
  int rank = 0;
  std::string host;
  std::int64_t clock_offset_ns = 0;  // to add to its times; see ClockOffset
  std::int64_t origin_ns = 0;        // where the trace's time begins, on the common clock
  std::vector<std::string> lanes{};  // from top to bottom
  std::vector<TraceEvent> events{};
};

/// The rank as a list of events of the Trace Event Format (Google, 2016): one process for the rank, one thread for each
/// lane, complete events with microseconds. Without brackets, so that lists of several ranks can be joined.
std::string to_chrome_events(const RankTrace& trace);

/// The whole file of such lists, for Perfetto and chrome://tracing.
std::string to_chrome_trace(const std::vector<std::string>& ranks);

}  // namespace phalanx
