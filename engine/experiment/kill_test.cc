// SIGKILL at random moments: what goes on from the checkpoints equals the run that nobody has killed, bit for bit.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "engine/experiment/experiment.h"
#include "framework/base/config/config.h"
#include "framework/base/environment.h"
#include "framework/base/files.h"
#include "framework/base/random.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

// 7 steps an epoch, 42 in all; saves after every second step, so that most kills hit a checkpoint in the making.
constexpr const char* kTiny = R"(
name: tiny
seed: 3
model: {name: mlp, hidden: [64]}
dataset: {name: digits, train_samples: 100, test_samples: 26, side: 16}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
schedule: {name: plateau, patience: 0, threshold: 0.2, gamma: 0.5}
train: {global_batch_size: 16, epochs: 6}
watch: {every_steps: 5, progress: false}
checkpoint: {every_steps: 2, keep_last: 2, resume: auto}
)";

std::string new_folder() {
  static int number = 0;
  const std::string path = ::testing::TempDir() + "/kill" + std::to_string(++number);
  fs::remove_all(path);
  return path;
}

// Two ranks in one process, which SIGKILL ends together.
[[noreturn]] void train(const std::string& path) {
  ExperimentConfig config;
  config::load_text(config, kTiny, "tiny.yaml");
  const auto splits = config.dataset.make();
  const RunFolder folder = RunFolder::create(path, /*goes_on=*/true);
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    at::set_num_threads(1);
    run_experiment(config, {.world = world, .splits = splits, .folder = folder});
  });
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

// Whether it came to its end within the time; a child that fails is a failure.
bool train_for(const std::string& path, Clock::duration time) {
  const pid_t child = ::fork();
  if (child == 0) train(path);
  const auto end = Clock::now() + time;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (WIFSIGNALED(status)) return false;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return true;
}

std::string metrics(const std::string& path) {
  std::istringstream text(read_file(RunFolder(path).metrics()));
  std::string lines;
  for (std::string line; std::getline(text, line);) {
    Json json = Json::parse(line);
    json.erase("samples_per_second");
    json.erase("seconds");
    json.erase("step_ms");
    lines += json.dump() + "\n";
  }
  return lines;
}

TEST(Kill, AtRandomMomentsItEndsLikeTheRunThatNobodyKilled) {
  const auto kills = environment_int("KILLS").value_or(6);
  const std::string whole = new_folder();
  const auto start = Clock::now();
  ASSERT_TRUE(train_for(whole, std::chrono::minutes(5)));
  const auto duration = Clock::now() - start;
  const std::string weights = read_file(RunFolder(whole).weights()), lines = metrics(whole);
  std::int64_t killed = 0;
  for (std::uint64_t run = 0; killed < kills; ++run) {
    const std::string path = new_folder();
    // After two kills it is let be; a run that is killed early again and again would never end.
    for (std::uint64_t attempt = 0; attempt < 2; ++attempt) {
      const auto moment = static_cast<double>(mix(mix(11, run), attempt) % 1000) / 1000;
      if (!train_for(path, std::chrono::duration_cast<Clock::duration>(duration * moment))) ++killed;
    }
    ASSERT_TRUE(train_for(path, std::chrono::minutes(5)));
    ASSERT_EQ(read_file(RunFolder(path).weights()), weights) << "run " << run;
    ASSERT_EQ(metrics(path), lines) << "run " << run;
    fs::remove_all(path);
  }
}

}  // namespace
}  // namespace phalanx
