// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/base/text.h"

namespace phalanx::bench {
namespace {

const Row& base_of(const Row& row, const std::vector<Row>& rows) {
  return *std::ranges::find_if(rows, [&](const Row& other) {
    return other.op == row.op && other.bytes == row.bytes && other.memory == row.memory;
  });
}

std::string head(const Row& row) {
  const std::string bytes = find_operation(row.op).bytes;
  return format_text("\n%s on %d ranks%s%s\n", row.op.c_str(), row.ranks, bytes.empty() ? "" : "; bytes ",
                     bytes.c_str()) +
         format_text("%9s  %-8s %-14s %-10s %11s %11s %8s %8s %8s\n", "bytes", "backend", "algorithm", "memory",
                     "p50 us", "p90 us", "alg GB/s", "bus GB/s", "time");
}

std::string bandwidth(double gb_s) { return gb_s > 0 ? format_text("%8.2f", gb_s) : format_text("%8s", "-"); }

std::string times(double ratio) { return format_text(ratio < 1000 ? "%7.2fx" : "%7.0fx", ratio); }

}  // namespace

std::string to_table(const Result& result) {
  std::string text, op;
  for (const auto& row : result.rows) {
    if (row.op != op) text += head(row);
    op = row.op;
    const bool sized = row.bytes > 0;
    text += format_text("%9s  %-8s %-14s %-10s %11.2f %11.2f %s %s %s\n", sized ? format_bytes(row.bytes).c_str() : "-",
                        row.backend.c_str(), row.algorithm.c_str(), sized ? row.memory.c_str() : "-", row.p50_us,
                        row.p90_us, bandwidth(row.alg_gb_s).c_str(), bandwidth(row.bus_gb_s).c_str(),
                        times(row.p50_us / base_of(row, result.rows).p50_us).c_str());
  }
  text += format_text("\nbarrier of the first backend: %.0f ns\n", result.round_trip_ns);
  for (const auto& one : result.absent) {
    text += one.op + ", " + one.backend + ", " + one.algorithm + ": " + one.why + "\n";
  }
  return text;
}

std::string to_json(const Result& result) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array(), absent = Json::array();
  for (const auto& row : result.rows) {
    rows.push_back({{"op", row.op},
                    {"backend", row.backend},
                    {"algorithm", row.algorithm},
                    {"ranks", row.ranks},
                    {"bytes", row.bytes},
                    {"memory", row.memory},
                    {"p50_us", row.p50_us},
                    {"p90_us", row.p90_us},
                    {"alg_gb_s", row.alg_gb_s},
                    {"bus_gb_s", row.bus_gb_s}});
  }
  for (const auto& one : result.absent) {
    absent.push_back({{"op", one.op}, {"backend", one.backend}, {"algorithm", one.algorithm}, {"why", one.why}});
  }
  return Json{{"round_trip_ns", result.round_trip_ns}, {"rows", rows}, {"absent", absent}}.dump(2) + "\n";
}

}  // namespace phalanx::bench
