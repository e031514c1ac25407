// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/tuning/tuner.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "framework/base/files.h"
#include "framework/collectives/selection/selecting_communicator.h"
#include "framework/collectives/tuning/measure.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using testing::run_ranks;

class TunerTest : public ::testing::Test {
 protected:
  TunerTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~TunerTest() override { fs::remove_all(folder_); }

  std::string run_file(const std::string& run) const { return folder_ + "/" + run + ".json"; }
  std::string cache() const { return folder_ + "/cache/selection"; }

  Tuner::Options options(const std::string& run, const Topology& topology) const {
    return {.topology = topology, .run_file = run_file(run), .cache = cache()};
  }

  const std::string folder_ = ::testing::TempDir() + "/tuner_test";
};

// A rank of a program that repeats an all_reduce of the world and another one of pairs.
struct Program {
  explicit Program(const CommunicatorPtr& world, const std::string& host = "here")
      : topology(detect_topology(*world, "inproc", "")),
        selection(std::make_shared<LiveSelection>(SelectionTable(), LiveSelection::Tuning::kOn, host)),
        group(std::make_shared<SelectingCommunicator>(world, selection)),
        pair(group->split(world->rank() % 2, world->rank())) {}

  void step(std::int64_t elements = 1000) const {
    at::Tensor tensor = at::ones({elements});
    group->all_reduce(tensor, Reduction::kSum).wait();
    pair->all_reduce(tensor, Reduction::kSum).wait();
    ASSERT_EQ(tensor[0].item<float>(), static_cast<float>(group->size() * pair->size()));
  }

  void tune(Tuner& tuner, std::int64_t elements = 1000) const {
    tuner.record();
    step(elements);
    tuner.tune(*group);
    step(elements);
  }

  Topology topology;
  std::shared_ptr<LiveSelection> selection;
  CommunicatorPtr group, pair;
};

using Shape = std::tuple<std::int64_t, std::string, std::int64_t>;  // ranks, scope, bytes

std::set<Shape> shapes_in(const std::string& path) {
  std::set<Shape> shapes;
  for (const auto& row : load_tuned(path).measured) shapes.emplace(row.ranks, row.scope, row.bytes);
  return shapes;
}

TEST_F(TunerTest, MeasuresWhatTheProgramUses) {
  run_ranks("inproc", 4, [&](const CommunicatorPtr& world) {
    const Program program(world);
    Tuner tuner(program.selection, options("run", program.topology));
    program.tune(tuner);
    const std::string table = program.selection->table().to_text();
    EXPECT_EQ(table, SelectionTable(load_tuned(run_file("run")).table).to_text()) << "on all ranks";
  });
  const TunedFile tuned = load_tuned(run_file("run"));
  EXPECT_EQ(shapes_in(run_file("run")), (std::set<Shape>{{4, "host", 4096}, {2, "host", 4096}}));
  for (const auto& name : candidates_of(Op::kAllReduce)) {
    const auto is_of = [&](const Measured& row) { return row.algorithm == name && row.p50_us > 0; };
    EXPECT_GE(std::ranges::count_if(tuned.measured, is_of), 1) << name;
  }
}

TEST_F(TunerTest, LaterRunsTakeTheTableFromTheCache) {
  for (const std::string run : {"first", "second"}) {
    run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
      const Program program(world);
      Tuner tuner(program.selection, options(run, program.topology));
      program.tune(tuner);
    });
  }
  EXPECT_EQ(read_file(run_file("first")), read_file(run_file("second"))) << "not measured again";
  EXPECT_EQ(std::distance(fs::directory_iterator(cache()), fs::directory_iterator()), 1);
}

TEST_F(TunerTest, OnlyWhatIsMissingIsMeasured) {
  for (const std::int64_t elements : {1000, 100'000}) {
    run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
      const Program program(world);
      Tuner tuner(program.selection, options("run", program.topology));
      program.tune(tuner, elements);
    });
  }
  EXPECT_EQ(shapes_in(run_file("run")), (std::set<Shape>{{2, "host", 4096}, {2, "host", 1 << 19}}));
}

TEST_F(TunerTest, AnotherTopologyHasAnotherCache) {
  for (const std::string levels : {"", "host, numa"}) {
    run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
      const Program program(world);
      Topology topology = program.topology;
      topology.levels = levels;
      Tuner tuner(program.selection, options("run" + levels, topology));
      program.tune(tuner);
    });
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(cache()), fs::directory_iterator()), 2);
}

TEST_F(TunerTest, AFileThatCannotBeUsedIsReplaced) {
  write_atomically(run_file("run"), "not a file of ours");
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const Program program(world);
    Tuner tuner(program.selection, options("run", program.topology));
    EXPECT_FALSE(tuner.adopt(*world));
    program.tune(tuner);
  });
  EXPECT_FALSE(load_tuned(run_file("run")).measured.empty());
}

TEST_F(TunerTest, AFolderThatCannotBeWrittenDoesNotEndTheProgram) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const Program program(world);
    Tuner tuner(program.selection,
                {.topology = program.topology, .run_file = "/proc/no/run.json", .cache = "/proc/no/cache"});
    program.tune(tuner);
  });
}

// A run that resumes must add in the same order as before it was interrupted.
TEST_F(TunerTest, AdoptsTheFileOfTheRun) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const Program program(world);
    std::vector<Measured> measured{
        {.op = "all_reduce", .algorithm = "native", .bytes = 4096, .p50_us = 9, .ranks = 2, .scope = "host"},
        {.op = "all_reduce", .algorithm = "ring", .bytes = 4096, .p50_us = 1, .ranks = 2, .scope = "host"}};
    if (world->rank() == 0) save_tuned(run_file("run"), {.topology = program.topology, .measured = measured});
    Tuner tuner(program.selection, options("run", program.topology));
    EXPECT_TRUE(tuner.adopt(*world));
    ASSERT_EQ(program.selection->table().rules().size(), 1u);
    EXPECT_EQ(describe(program.selection->table().rules()[0]), "all_reduce on 2 ranks of one host for cpu -> ring");
    program.step();
  });
}

TEST_F(TunerTest, RulesOfTheConfigComeFirst) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    const Program program(world);
    const SelectionTable first{{.op = "all_reduce", .algorithm = "recursive_doubling"}};
    Tuner tuner(program.selection, {.topology = program.topology, .first = first});
    program.tune(tuner);
    EXPECT_EQ(program.selection->table().rules().front().algorithm, "recursive_doubling");
  });
}

// The hosts are only names.
TEST_F(TunerTest, GroupsInsideHostsAndBetweenThemAreMeasuredSeparately) {
  run_ranks("inproc", 4, [&](const CommunicatorPtr& world) {
    const Program program(world, world->rank() < 2 ? "host a" : "host b");
    const auto host = program.group->split(world->rank() / 2, world->rank());
    Tuner tuner(program.selection, options("run", program.topology));
    tuner.record();
    at::Tensor tensor = at::ones({1000});
    program.pair->all_reduce(tensor, Reduction::kSum).wait();
    host->all_reduce(tensor, Reduction::kSum).wait();
    tuner.tune(*program.group);
  });
  EXPECT_EQ(shapes_in(run_file("run")), (std::set<Shape>{{2, "host", 4096}, {2, "hosts", 4096}}));
}

TEST(MeasureCandidates, MeasuresEachThatSuits) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    for (const Op op : {Op::kBroadcast, Op::kReduce, Op::kAllReduce, Op::kReduceScatter, Op::kAllGather, Op::kGather,
                        Op::kScatter, Op::kAllToAll}) {
      const auto times = measure_candidates(world, op, 64);
      ASSERT_EQ(times.size(), candidates_of(op).size());
      EXPECT_GT(times.front(), 0) << "native always suits";
    }
  });
}

}  // namespace
}  // namespace phalanx
