// SPDX-License-Identifier: Apache-2.0
// Tests that every operation is measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "framework/testing/worlds.h"
#include "tools/bench/measure.h"
#include "tools/bench/subject.h"
#include "tools/bench/table.h"

namespace phalanx::bench {
namespace {

Options few(std::vector<std::string> ops, std::vector<std::int64_t> bytes) {
  Options options;
  options.ops = std::move(ops);
  options.bytes = std::move(bytes);
  options.rounds = 2;
  options.budget_ms = 0.05;
  return options;
}

Result measure_alone(const CommunicatorPtr& world, const Options& options) {
  Subjects subjects;
  subjects.push_back(make_backend_subject("x", world, options.algorithms));
  return measure(options, subjects, *world);
}

class BenchOn : public ::testing::TestWithParam<const char*> {};

TEST_P(BenchOn, MeasuresEveryOperationInEveryMemory) {
  testing::run_ranks(GetParam(), 2, [](const CommunicatorPtr& world) {
    const Result result = measure_alone(world, few(operation_names(), {1024, 64 << 10}));
    const std::size_t sized = operation_names().size() - 1;
    ASSERT_EQ(result.rows.size(), sized * 2 * 2 + 1);
    EXPECT_TRUE(result.absent.empty());
    EXPECT_GT(result.round_trip_ns, 0);
    for (const auto& row : result.rows) {
      EXPECT_GT(row.p50_us, 0) << row.op;
      EXPECT_GE(row.p90_us, row.p50_us) << row.op;
    }
  });
}

// With three ranks, 1000 bytes cannot be divided into equal parts.
TEST_P(BenchOn, RoundsBytesUpToEqualParts) {
  testing::run_ranks(GetParam(), 3, [](const CommunicatorPtr& world) {
    const std::vector<std::string> partitioned{"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"};
    for (const auto& row : measure_alone(world, few(partitioned, {1, 1000})).rows) {
      EXPECT_TRUE(row.bytes == 12 || row.bytes == 1008) << row.op << " " << row.bytes;
    }
    for (const auto& row : measure_alone(world, few({"all_reduce", "send_recv"}, {1000})).rows) {
      EXPECT_EQ(row.bytes, 1000) << row.op;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, BenchOn, ::testing::Values("inproc", "shm"), [](const auto& test) { return test.param; });

// Each operation takes a millisecond, of which it times only 10 ns.
class SlowAfterLaunch final : public Subject {
 public:
  explicit SlowAfterLaunch(std::int64_t& most) : most_(most) {}
  std::string name() const override { return "slow"; }
  int size() const override { return 1; }
  std::vector<std::string> algorithms(const std::string&) const override { return {"native"}; }
  std::string absent(const Case&) const override { return ""; }
  std::unique_ptr<Trial> prepare(const Case&) override {
    return make_trial([] {},
                      [this](std::int64_t repeats) {
                        most_ = std::max(most_, repeats);
                        std::this_thread::sleep_for(std::chrono::milliseconds(repeats));
                        return static_cast<double>(repeats) / 100;
                      });
  }

 private:
  std::int64_t& most_;
};

TEST(Bench, MeasuresFewOperationsThatDoMoreWorkThanTheyTime) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    std::int64_t most = 0;
    Subjects subjects;
    subjects.push_back(std::make_unique<SlowAfterLaunch>(most));
    auto options = few({"launch"}, {1024});
    options.budget_ms = 1;  // 20,000 operations by the time that they report
    const Result result = measure(options, subjects, *world);
    EXPECT_FALSE(result.rows.empty());
    EXPECT_LE(most, 64);
  });
}

TEST(Bench, PassesOnTheRowsAfterEachOperation) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    Subjects subjects;
    subjects.push_back(make_backend_subject("x", world, {"native"}));
    std::vector<std::string> last;
    measure(few({"broadcast", "reduce"}, {1024}), subjects, *world,
            [&](const Result& so_far) { last.push_back(so_far.rows.back().op); });
    EXPECT_EQ(last, (std::vector<std::string>{"broadcast", "reduce"}));
  });
}

// Compares with the ratios of nccl-tests for each operation, on 2 and on 4 ranks.
TEST(Bench, BusBandwidthIsDefinedAsInNcclTests) {
  const auto factors = [](const char* op) {
    return std::pair(find_operation(op).bus_factor(2), find_operation(op).bus_factor(4));
  };
  EXPECT_EQ(factors("all_reduce"), std::pair(1.0, 1.5));
  for (const char* op : {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}) {
    EXPECT_EQ(factors(op), std::pair(0.5, 0.75)) << op;
  }
  for (const char* op : {"broadcast", "reduce", "send_recv"}) EXPECT_EQ(factors(op), std::pair(1.0, 1.0)) << op;
  for (const char* op : {"barrier", "launch"}) EXPECT_EQ(factors(op), std::pair(0.0, 0.0)) << op;
}

TEST(Bench, BandwidthIsBytesOverTheMedian) {
  testing::run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    for (const auto& row : measure_alone(world, few({"all_reduce"}, {4096})).rows) {
      EXPECT_NEAR(row.alg_gb_s, 4096 / row.p50_us / 1000, 1e-9);
      EXPECT_NEAR(row.bus_gb_s, 1.5 * row.alg_gb_s, 1e-9);
    }
  });
}

TEST(Bench, SendRecvNeedsTwoRanks) {
  testing::run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const Result result = measure_alone(world, few({"all_reduce", "send_recv"}, {1024}));
    EXPECT_EQ(result.rows.size(), 2u);
    ASSERT_EQ(result.absent.size(), 1u);
    EXPECT_EQ(result.absent[0].op, "send_recv");
    EXPECT_EQ(result.absent[0].why, "needs two ranks");
  });
}

TEST(Bench, ListsAlgorithmsThatDoNotExist) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    Options options = few({"broadcast"}, {1024, 2048});
    options.algorithms = {"native", "no_such"};
    const Result result = measure_alone(world, options);
    EXPECT_EQ(result.rows.size(), 4u);
    const std::string why = "there is no such algorithm for this operation";
    EXPECT_EQ(result.absent, (std::vector<Absent>{{"broadcast", "x", "no_such", why}}));
  });
}

Row all_reduce_row() {
  Row row;
  row.op = "all_reduce";
  row.backend = "shm";
  row.algorithm = "native";
  row.memory = "registered";
  row.ranks = 2;
  row.bytes = 1024;
  row.p50_us = 0.5;
  row.p90_us = 0.75;
  row.alg_gb_s = row.bus_gb_s = 2.048;
  return row;
}

Result three_rows() {
  const Row shm = all_reduce_row();
  Row mpi = shm;
  mpi.backend = "mpi";
  mpi.p50_us = 1.5;
  Row barrier = shm;
  barrier.op = "barrier";
  barrier.bytes = 0;
  barrier.alg_gb_s = barrier.bus_gb_s = 0;
  return {.rows = {shm, mpi, barrier}, .absent = {{"launch", "gloo", "native", "it blocks"}}, .round_trip_ns = 150};
}

TEST(Bench, TheTableComparesWithTheFirstBackend) {
  const std::string table = to_table(three_rows());
  EXPECT_NE(table.find("all_reduce on 2 ranks; bytes of each rank's tensor\n"), std::string::npos) << table;
  EXPECT_NE(table.find("1 KB  shm      native         registered        0.50        0.75     2.05     2.05    1.00x\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("3.00x\n"), std::string::npos) << table;
  EXPECT_NE(table.find("-  shm      native         -                 0.50        0.75        -        -    1.00x\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("launch, gloo, native: it blocks\n"), std::string::npos) << table;
  EXPECT_NE(table.find("150 ns\n"), std::string::npos) << table;
}

TEST(Bench, TheJsonHoldsWhatTheTableShows) {
  const auto json = nlohmann::json::parse(to_json(three_rows()));
  EXPECT_EQ(json["round_trip_ns"], 150);
  ASSERT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][1], nlohmann::json::parse(R"({"op": "all_reduce", "backend": "mpi", "algorithm": "native",
    "ranks": 2, "bytes": 1024, "memory": "registered", "p50_us": 1.5, "p90_us": 0.75, "alg_gb_s": 2.048,
    "bus_gb_s": 2.048})"));
  EXPECT_EQ(json["absent"][0]["why"], "it blocks");
}

}  // namespace
}  // namespace phalanx::bench
