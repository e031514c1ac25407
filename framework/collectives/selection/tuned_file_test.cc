// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/tuned_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Topology somewhere() {
  return {.hosts = {{.ranks = 2, .cores = 8, .cpu = "Model A"}, {.ranks = 2, .cores = 8, .cpu = "Model A"}},
          .backend = "mpi",
          .phalanx = "0.1.0",
          .libtorch = "2.13.0",
          .mpi = "Open MPI v5.0.6"};
}

TunedFile tuned() {
  return {
      .topology = somewhere(),
      .table = SelectionTable{{.op = "all_reduce",
                               .up_to = "8192",
                               .ranks = 4,
                               .scope = "hosts",
                               .device = "cpu",
                               .algorithm = "counting"}},
      .measured = {
          {.op = "all_reduce", .algorithm = "counting", .bytes = 1024, .p50_us = 12.5, .ranks = 4, .scope = "hosts"}}};
}

std::string path_of(const std::string& name) { return ::testing::TempDir() + "/" + name; }

TEST(TunedFile, IsReadAsItWasWritten) {
  const auto path = path_of("tuned.json");
  save_tuned(path, tuned());
  const auto read = load_tuned(path);
  EXPECT_EQ(read.topology, somewhere());
  EXPECT_EQ(read.table.to_text(), tuned().table.to_text());
  EXPECT_EQ(read.measured, tuned().measured);
  EXPECT_NO_THROW(check_fits(read, somewhere(), path));
}

// Before scopes and devices were keys of the table.
TEST(TunedFile, OneOfFormat1IsRead) {
  const auto path = path_of("old.json");
  write_atomically(path, R"({
 "format": 1,
 "topology": {"hosts": [{"ranks": 2, "cores": 8, "cpu": "Model A"}, {"ranks": 2, "cores": 8, "cpu": "Model A"}],
              "device": "cpu", "backend": "mpi", "phalanx": "0.1.0", "libtorch": "2.13.0", "mpi": "Open MPI v5.0.6"},
 "rules": [{"op": "all_reduce", "up_to": "8192", "ranks": 4, "backend": "own", "algorithm": "counting"}],
 "measured": [{"op": "all_reduce", "algorithm": "counting", "bytes": 1024, "p50_us": 12.5}]
})");
  const auto read = load_tuned(path);
  EXPECT_EQ(read.topology, somewhere());
  ASSERT_EQ(read.table.rules().size(), 1u);
  EXPECT_EQ(describe(read.table.rules()[0]), "all_reduce up to 8192 on 4 ranks -> counting");
  ASSERT_EQ(read.measured.size(), 1u);
  EXPECT_EQ(read.measured[0].ranks, 4);
  EXPECT_EQ(read.measured[0].scope, kAny);
}

void expect_refused(const std::string& text, const std::string& why) {
  const auto path = path_of("refused.json");
  write_atomically(path, text);
  EXPECT_THAT([&] { load_tuned(path); }, ThrowsMessage<ConfigError>(AllOf(HasSubstr(path), HasSubstr(why)))) << text;
}

TEST(TunedFile, WhatIsNotATunedFileIsRefused) {
  EXPECT_THAT([] { load_tuned("no/such.json"); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("no/such.json"), HasSubstr("//tools:tune creates one"))));
  expect_refused("rules", "is not a file written by tools:tune");
  expect_refused("{}", "is not a file written by tools:tune");
  expect_refused(R"({"format": "new"})", "is not a file written by tools:tune");
}

TEST(TunedFile, OneOfAnotherFormatIsRefused) {
  expect_refused(R"({"format": 7})",
                 "has format 7, but this program reads 1 to 2; create a new one: bazel run //tools:tune -- --output");
}

TEST(TunedFile, OneWithAnAlgorithmThatThisProgramLacksIsRefused) {
  const auto path = path_of("lacks.json");
  save_tuned(path, tuned());
  std::string text = read_file(path);
  text.replace(text.find("\"counting\""), 10, "\"cunting\"");
  expect_refused(text, "rules[0].algorithm: \"cunting\" is not an algorithm of all_reduce");
}

// A single difference is enough, and the message names it.
TEST(TunedFile, OneThatWasMeasuredElsewhereIsRefused) {
  const auto expect_foreign = [](const std::function<void(Topology&)>& change, const std::string& why) {
    Topology here = somewhere();
    change(here);
    EXPECT_THAT([&] { check_fits(tuned(), here, "t.json"); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("t.json: was measured elsewhere: " + why + ". "),
                                                 HasSubstr("bazel run //tools:tune -- --ranks "),
                                                 HasSubstr(" --backend " + here.backend + " --output t.json"))))
        << why;
  };
  expect_foreign([](auto& here) { here.hosts = {{.ranks = 2, .cores = 8, .cpu = "Model A"}}; }, "hosts 2, here 1");
  expect_foreign([](auto& here) { here.hosts[0].ranks = 3; }, "ranks per host 2, here 3, 2");
  expect_foreign([](auto& here) { here.hosts[1].cores = 4; }, "cores 8, here 8, 4");
  expect_foreign([](auto& here) { here.hosts[0].cpu = here.hosts[1].cpu = "Model B"; }, "CPU Model A, here Model B");
  expect_foreign([](auto& here) { here.device = "cuda"; }, "device cpu, here cuda");
  expect_foreign([](auto& here) { here.backend = "gloo"; }, "backend mpi, here gloo");
  expect_foreign([](auto& here) { here.phalanx = "0.2.0"; }, "Phalanx 0.1.0, here 0.2.0");
  expect_foreign([](auto& here) { here.libtorch = "2.14.0"; }, "LibTorch 2.13.0, here 2.14.0");
  expect_foreign([](auto& here) { here.levels = "host, numa"; }, "levels none, here host, numa");
  expect_foreign([](auto& here) { here.mpi = ""; }, "MPI Open MPI v5.0.6, here none");
}

TEST(Topology, IsTheSameOnAllRanks) {
  testing::run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const auto topology = detect_topology(*world, "inproc", "");
    ASSERT_EQ(topology.hosts.size(), 1u);
    EXPECT_EQ(topology.ranks(), 3);
    EXPECT_GT(topology.hosts[0].cores, 0);
    EXPECT_NE(topology.hosts[0].cpu, "");
    EXPECT_NE(topology.phalanx, "");
    EXPECT_NE(topology.libtorch, "");
    EXPECT_EQ(differences(topology, detect_topology(*world, "inproc", "")), std::vector<std::string>());
  });
}

}  // namespace
}  // namespace phalanx
