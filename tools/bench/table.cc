#include "tools/bench/table.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "framework/base/text.h"

namespace phalanx::bench {
namespace {

template <class... Args>
std::string line(const char* pattern, Args... args) {
  char text[160];
  std::snprintf(text, sizeof(text), pattern, args...);
  return text;
}

const Row& base_of(const Row& row, const std::vector<Row>& rows) {
  return *std::ranges::find_if(rows, [&](const Row& other) {
    return other.op == row.op && other.bytes == row.bytes && other.memory == row.memory;
  });
}

}  // namespace

std::string to_table(const Result& result) {
  std::string text = line("%-11s %-8s %5s %9s  %-10s %11s %11s %9s %8s\n", "op", "backend", "ranks", "bytes", "memory",
                          "p50 us", "p90 us", "bus GB/s", "time");
  for (const auto& row : result.rows) {
    text += line("%-11s %-8s %5d %9s  %-10s %11.2f %11.2f %9.2f %7.2fx\n", row.op.c_str(), row.backend.c_str(),
                 row.ranks, format_bytes(row.bytes).c_str(), row.memory.c_str(), row.p50_us, row.p90_us, row.bus_gb_s,
                 row.p50_us / base_of(row, result.rows).p50_us);
  }
  return text + line("barrier of the first backend: %.0f ns\n", result.round_trip_ns);
}

std::string to_json(const Result& result) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& row : result.rows) {
    rows.push_back({{"op", row.op},
                    {"backend", row.backend},
                    {"ranks", row.ranks},
                    {"bytes", row.bytes},
                    {"memory", row.memory},
                    {"p50_us", row.p50_us},
                    {"p90_us", row.p90_us},
                    {"bus_gb_s", row.bus_gb_s}});
  }
  return nlohmann::ordered_json{{"round_trip_ns", result.round_trip_ns}, {"rows", rows}}.dump(2) + "\n";
}

}  // namespace phalanx::bench
