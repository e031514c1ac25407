// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/trace/operation_trace.h"

#include <algorithm>
#include <string>

#include "framework/comm/operations/flight_recorder.h"
#include "framework/observe/monotonic_clock.h"

namespace phalanx {
namespace {

using Record = FlightRecorder::Record;

std::vector<Record> records_until_now(Communicator& group, const Call& mark, std::int64_t& mark_ns) {
  group.run(mark, [&mark_ns] { mark_ns = monotonic_ns(); }).wait();
  return group.recorder().records();
}

TraceEvent to_event(const Record& record, std::int64_t recorder_ns) {
  const auto us = [](std::int64_t ns) { return std::to_string(ns / 1000) + " us"; };
  return {.name = std::string(to_string(record.call.op)),
          .lane = {},
          .begin_ns = recorder_ns + record.started_ns,
          .end_ns = recorder_ns + std::max(record.finished_ns, record.started_ns),
          .details = {{"call", describe(record.call)},
                      {"group", record.group},
                      {"sequence", std::to_string(record.sequence)},
                      {"waited after its launch", us(record.started_ns - record.launched_ns)},
                      {"state", std::string(to_string(record.state))}}};
}

}  // namespace

void spread_over_lanes(std::vector<TraceEvent>& events, const std::string& lane) {
  std::ranges::sort(events, [](const TraceEvent& a, const TraceEvent& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  std::vector<std::vector<std::int64_t>> open;  // for each lane: the ends of the open events, innermost last
  for (auto& event : events) {
    std::size_t i = 0;
    for (; i < open.size(); ++i) {
      while (!open[i].empty() && open[i].back() <= event.begin_ns) open[i].pop_back();
      if (open[i].empty() || event.end_ns <= open[i].back()) break;
    }
    if (i == open.size()) open.emplace_back();
    open[i].push_back(event.end_ns);
    event.lane = i == 0 ? lane : lane + " " + std::to_string(i + 1);
  }
}

std::vector<TraceEvent> trace_operations(Communicator& group, std::int64_t begin_ns) {
  std::int64_t mark_ns = 0;
  const Call mark{.detail = 0x636c6f636b, .op = Op::kCustom};  // "clock"
  const auto records = records_until_now(group, mark, mark_ns);
  const auto marked =
      std::find_if(records.rbegin(), records.rend(), [&](const Record& record) { return record.call == mark; });
  std::vector<TraceEvent> events;
  if (marked == records.rend()) return events;
  const std::int64_t recorder_ns = mark_ns - marked->started_ns;
  for (const auto& record : records) {
    if (record.number == marked->number || record.started_ns == 0 || record.finished_ns == 0) continue;
    auto event = to_event(record, recorder_ns);
    if (event.begin_ns >= begin_ns) events.push_back(std::move(event));
  }
  spread_over_lanes(events, kOperationsLane);
  return events;
}

}  // namespace phalanx
