// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/doctor/diagnosis.h"

namespace phalanx::doctor {
namespace {

BackendFinding all_of(const std::string& name, const std::string& status) {
  BackendFinding finding{.name = name, .device = name == "nccl" ? "cuda" : "cpu"};
  for (const auto* operation : kOperationNames) finding.operations[operation] = status;
  return finding;
}

constexpr const char* kNoDriver = "there is no NVIDIA driver";

Diagnosis healthy() {
  Diagnosis found{.machine = {}, .launched = "by nobody", .nodes = "one"};
  found.machine.host = "here";
  found.machine.cpu = "Fast CPU";
  found.machine.cores = found.machine.allowed_cores = 4;
  found.machine.open_files = found.machine.locked_memory = -1;
  found.libraries = {{"LibTorch", "2.13.0", "2.13.0", "/lib/libtorch_cpu.so"},
                     {"glibc", "2.30", "2.36", "/lib/libc.so.6"}};
  found.torch_build = {"BLAS_INFO=mkl"};
  found.vectors = "AVX2";
  found.kernels = {{"max_pool2d", "float32", "Highway", "it is faster"}};
  found.operations.assign(std::begin(kOperationNames), std::end(kOperationNames));
  found.backends = {all_of("shm", "ok"), all_of("nccl", kNoDriver)};
  found.backends[0].round_trip_us = 0.5;
  found.rank_address = "10.0.0.1 of eth0, the first interface that is up";
  found.automatic = {{"ranks of one host", "shm", "the ranks share memory"},
                     {"ranks of several hosts", "hybrid", "shm inside each host"}};
  found.automatic_here = "ranks of several hosts";
  found.algorithms["all_reduce"] = {{"ring", "2 (P - 1) steps"}};
  found.cores = {{0, 1, 105.0}, {0, 3, 480.0}};
  return found;
}

bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

TEST(Report, FitsATerminal) {
  Diagnosis found = healthy();
  found.notes = {std::string(300, 'x'),
                 "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n "
                 "o p q r s t u v w x y z a b c d e f g h i j k l m n o p q r s t u v w x y z"};
  found.backends[0].operations["reduce"] =
      "rank 1: a very long reason why it does not work, which goes on and on, and "
      "would not fit into one line of a terminal";
  std::istringstream lines(to_text(found, false));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.size() <= 100 || has(line, "xxxx")) << line;
  }
}

TEST(Report, IsComplete) {
  const std::string text = to_text(healthy(), false);
  for (const auto* operation : kOperationNames) EXPECT_TRUE(has(text, std::string("\n  ") + operation + " ")) << text;
  EXPECT_TRUE(has(text, std::string("[1] ") + kNoDriver)) << text;
  EXPECT_TRUE(has(text, "nearest cores     0 and 1: round trip of a cache line 105 ns")) << text;
  EXPECT_TRUE(has(text, "farthest cores    0 and 3: round trip of a cache line 480 ns")) << text;
  EXPECT_TRUE(has(text, "all_reduce        ring")) << text;
  EXPECT_TRUE(has(text, "address           10.0.0.1 of eth0, the first interface that is up")) << text;
  EXPECT_TRUE(has(text, "shm               ranks of one host: the ranks share memory")) << text;
  EXPECT_TRUE(has(text, "hybrid            ranks of several hosts (as these are): shm inside each host")) << text;
  EXPECT_TRUE(has(text, "Highway           max_pool2d (float32): it is faster")) << text;
}

TEST(Report, HasColorOnlyWhenAsked) {
  EXPECT_FALSE(has(to_text(healthy(), false), "\033"));
  EXPECT_TRUE(has(to_text(healthy(), true), "\033[32mok"));
}

TEST(Report, JsonHasEveryCell) {
  const auto json = nlohmann::json::parse(to_json(healthy()));
  EXPECT_EQ(json["operations"].size(), 2 * std::size(kOperationNames));
  for (const auto& cell : json["operations"]) {
    EXPECT_EQ(cell["status"], cell["backend"] == "shm" ? "ok" : kNoDriver);
    EXPECT_EQ(cell["device"], cell["backend"] == "shm" ? "cpu" : "cuda");
  }
  EXPECT_EQ(json["links"]["backends"][0]["round_trip_us"], 0.5);
  EXPECT_EQ(json["algorithms"]["all_reduce"][0]["name"], "ring");
  EXPECT_EQ(json["capabilities"]["nccl"], false);
  EXPECT_EQ(json["automatic"][1]["backend"], "hybrid");
  EXPECT_EQ(json["automatic"][1]["here"], true);
}

TEST(Notes, AreEmptyForAHealthyMachine) { EXPECT_EQ(notes_on(healthy()), std::vector<std::string>{}); }

TEST(Notes, DoNotMentionDevicesIfThereAreNone) {
  Diagnosis found = healthy();
  found.backends[1] = all_of("nccl", "cuda: there is no NVIDIA driver");
  EXPECT_EQ(notes_on(found), std::vector<std::string>{});
}

std::string note_on(const Diagnosis& found) {
  const auto notes = notes_on(found);
  EXPECT_EQ(notes.size(), 1u);
  return notes.empty() ? "" : notes[0];
}

TEST(Notes, NameWhatMaySlowRunsDownOrMakeThemFail) {
  Diagnosis found = healthy();
  found.torch_build = {"BLAS_INFO=generic"};
  EXPECT_TRUE(has(note_on(found), "generic BLAS"));

  found = healthy();
  found.libraries[0].loaded = "2.12.0";
  EXPECT_TRUE(has(note_on(found), "LibTorch 2.12.0 was loaded, but Phalanx was built with 2.13.0"));

  found = healthy();
  found.backends[0].operations["reduce"] = "no";
  EXPECT_TRUE(has(note_on(found), "backend shm fails in 1 of 13 operations"));

  found = healthy();
  found.machine.allowed_cores = 2;
  EXPECT_TRUE(has(note_on(found), "2 of 4 cores"));

  found = healthy();
  found.machine.dev_shm = 1 << 20;
  EXPECT_TRUE(has(note_on(found), "/dev/shm has only 1 MB"));

  found = healthy();
  found.machine.open_files = 256;
  EXPECT_TRUE(has(note_on(found), "only 256 open files"));

  found = healthy();
  found.machine.devices = {"Some GPU"};
  const auto notes = notes_on(found);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(has(notes[0], "backend nccl fails in 13 of 13 operations"));
  EXPECT_TRUE(has(notes[1], "ranks cannot compute on Some GPU"));
}

}  // namespace
}  // namespace phalanx::doctor
