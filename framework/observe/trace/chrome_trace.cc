// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/trace/chrome_trace.h"

#include <map>
#include <nlohmann/json.hpp>

#include "framework/base/text.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

Json metadata(const char* name, int rank, int lane, const char* key, const Json& value) {
  return {{"name", name}, {"ph", "M"}, {"pid", rank}, {"tid", lane}, {"args", {{key, value}}}};
}

// A double represents the nanoseconds of a trace exactly, since they begin at its origin. Nanoseconds since the host
// was started might be rounded.
double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

}  // namespace

std::string to_chrome_events(const RankTrace& trace) {
  std::string text;
  const auto add = [&text](const Json& event) {
    text += (text.empty() ? "" : ",\n") + event.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  const std::string name = "rank " + std::to_string(trace.rank) + " on " + trace.host;
  add(metadata("process_name", trace.rank, 0, "name", name));
  add(metadata("process_sort_index", trace.rank, 0, "sort_index", trace.rank));
  std::map<std::string, int> lanes;
  for (const auto& lane : trace.lanes) {
    const int number = static_cast<int>(lanes.size());
    lanes[lane] = number;
    add(metadata("thread_name", trace.rank, number, "name", lane));
    add(metadata("thread_sort_index", trace.rank, number, "sort_index", number));
  }
  for (const auto& event : trace.events) {
    Json json{{"name", event.name},
              {"ph", "X"},
              {"pid", trace.rank},
              {"tid", lanes.at(event.lane)},
              {"ts", microseconds(event.begin_ns + trace.clock_offset_ns - trace.origin_ns)},
              {"dur", microseconds(event.end_ns - event.begin_ns)}};
    for (const auto& [key, value] : event.details) json["args"][key] = value;
    add(json);
  }
  return text;
}

std::string to_chrome_trace(const std::vector<std::string>& ranks) {
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + join(ranks, ",\n") + "\n]}\n";
}

}  // namespace phalanx
