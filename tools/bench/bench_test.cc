#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/testing/worlds.h"
#include "tools/bench/measure.h"
#include "tools/bench/table.h"

namespace phalanx::bench {
namespace {

// Every operation, size and memory has one row, the same on all ranks.
TEST(Bench, MeasuresEveryCombination) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const Options options{.ops = {"all_reduce", "broadcast", "barrier"},
                          .backends = {"inproc"},
                          .bytes = {1024, 64 << 10},
                          .ranks = 2,
                          .rounds = 3,
                          .budget_ms = 0.1,
                          .json = {}};
    Subjects subjects;
    subjects["inproc"] = make_backend_subject(world);
    const Result result = measure(options, subjects, *world);
    ASSERT_EQ(result.rows.size(), 2u * 2 * 2 + 1);
    EXPECT_GT(result.round_trip_ns, 0);
    for (const auto& row : result.rows) {
      EXPECT_GT(row.p50_us, 0) << row.op;
      EXPECT_GE(row.p90_us, row.p50_us) << row.op;
    }
    // Two ranks: an all-reduce moves as many bytes over the busiest link as the tensor has.
    EXPECT_NEAR(result.rows[0].bus_gb_s, 1024 / result.rows[0].p50_us / 1000, 1e-9);
  });
}

Result two_rows() {
  const Row shm{.op = "all_reduce",
                .backend = "shm",
                .memory = "registered",
                .ranks = 2,
                .bytes = 1024,
                .p50_us = 0.5,
                .p90_us = 0.75,
                .bus_gb_s = 2.048};
  Row mpi = shm;
  mpi.backend = "mpi";
  mpi.p50_us = 1.5;
  return {.rows = {shm, mpi}, .round_trip_ns = 150};
}

TEST(Bench, TheTableComparesWithTheFirstBackend) {
  const std::string table = to_table(two_rows());
  EXPECT_NE(table.find("all_reduce  shm          2      1 KB  registered        0.50        0.75      2.05    1.00x\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("3.00x\n"), std::string::npos) << table;
}

TEST(Bench, TheJsonHoldsWhatTheTableShows) {
  const auto json = nlohmann::json::parse(to_json(two_rows()));
  EXPECT_EQ(json["round_trip_ns"], 150);
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][1]["backend"], "mpi");
  EXPECT_EQ(json["rows"][1]["p50_us"], 1.5);
  EXPECT_EQ(json["rows"][0]["memory"], "registered");
}

}  // namespace
}  // namespace phalanx::bench
