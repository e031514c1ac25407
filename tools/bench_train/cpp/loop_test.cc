// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/cpp/loop.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace phalanx::bench_train {
namespace {

void write_file(const std::string& path, const at::Tensor& tensor) {
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(tensor.const_data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
}

// Returns a job on 64 samples, whose files are in the folder of the test.
LoopJob make_job(const std::string& model) {
  const bool text = model == "char_lm";
  const std::string folder = testing::TempDir() + "/loop_test";
  std::filesystem::create_directories(folder);
  LoopJob job{.model = model, .inputs = folder + "/inputs", .targets = folder + "/targets", .samples = 64};
  job.input = text ? std::vector<std::int64_t>{16} : std::vector<std::int64_t>{1, 28, 28};
  job.classes = text ? 65 : 10;
  job.text = text;
  job.batch = 16;
  job.learning_rate = 0.05;
  const at::Tensor characters = at::randint(65, {64, 16}, at::kLong);
  write_file(job.inputs, text ? characters : at::randn({64, 1, 28, 28}));
  write_file(job.targets, text ? characters : at::randint(10, {64}, at::kLong));
  return job;
}

TEST(Networks, HaveTheParametersOfThePeersInPython) {
  const auto parameters_of = [](const char* name, const std::vector<std::int64_t>& input, std::int64_t classes) {
    std::int64_t sum = 0;
    for (const auto& parameter : make_network(name, input, classes)->parameters()) sum += parameter.numel();
    return sum;
  };
  EXPECT_EQ(669'706, parameters_of("mlp", {1, 28, 28}, 10));
  EXPECT_EQ(61'706, parameters_of("lenet", {1, 28, 28}, 10));
  constexpr std::int64_t kBlock = 4 * 128 + 128 * 384 + 384 + 128 * 128 + 128 + 2 * 128 * 512 + 512 + 128;
  EXPECT_EQ(65 * 128 + 64 * 128 + 4 * kBlock + 2 * 128, parameters_of("char_lm", {64}, 65));
  EXPECT_THROW(make_network("mpl", {1}, 1), std::invalid_argument);
}

TEST(Networks, SeeNoLaterCharacters) {
  const auto network = make_network("char_lm", {16}, 65);
  const at::Tensor text = at::randint(65, {1, 16}, at::kLong);
  at::Tensor changed = text.clone();
  changed.select(1, 9).fill_(0);
  const at::Tensor one = network->forward(text), other = network->forward(changed);
  EXPECT_TRUE(one.narrow(1, 0, 9).equal(other.narrow(1, 0, 9)));
}

TEST(Loop, LearnsItsSamples) {
  for (const char* model : {"mlp", "lenet", "char_lm"}) {
    SCOPED_TRACE(model);
    Loop loop(make_job(model));
    const auto turn = loop.run(60);
    ASSERT_EQ(60u, turn.losses.size());
    EXPECT_LT(turn.losses.back(), 0.9 * turn.losses.front());
    EXPECT_GT(turn.seconds, turn.backward);
    EXPECT_GT(turn.backward, 0);
  }
}

TEST(Loop, RanksShareTheBatches) {
  struct Sum final : Exchange {
    void before_forward() override { ++steps; }
    int steps = 0;
  };
  LoopJob job = make_job("mlp");
  job.size = 2;  // batches of 16 of both ranks: 2 steps in an epoch of 64 samples
  Loop loop(job);
  Sum count;
  loop.use(count);
  EXPECT_EQ(5u, loop.run(5).losses.size());  // also in later epochs
  EXPECT_EQ(5, count.steps);
}

TEST(Turns, AnswerUntilTheInputEnds) {
  Loop loop(make_job("mlp"));
  std::istringstream in("run 1\nrun 2\n");
  std::ostringstream out;
  serve(loop, in, out);
  std::istringstream lines(out.str());
  std::string ready, first, second;
  std::getline(lines, ready);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_EQ("ready", ready);
  EXPECT_EQ(1u, nlohmann::json::parse(first).at("losses").size());
  EXPECT_EQ(2u, nlohmann::json::parse(second).at("losses").size());
}

TEST(Turns, EndWithALineOrTheInput) {
  std::istringstream in("run 2\nend\nrun 3\n");
  EXPECT_EQ(2, read_turn(in));
  EXPECT_EQ(std::nullopt, read_turn(in));
  std::istringstream empty;
  EXPECT_EQ(std::nullopt, read_turn(empty));
}

TEST(Turns, RefuseOtherLines) {
  for (const char* line : {"walk 3", "run", "run 0"}) {
    std::istringstream in(line);
    EXPECT_THROW(read_turn(in), std::runtime_error) << line;
  }
}

TEST(LoopJob, IsReadFromJson) {
  const auto job = read_loop_job(
      R"({"rank": 1, "size": 2, "store": "s", "model": "mlp", "options": ["reducer", "views"], "inputs": "i",
          "targets": "t", "samples": 8, "input": [1, 28, 28], "classes": 10, "text": false, "batch": 4,
          "learning_rate": 0.5, "threads": 1})");
  EXPECT_EQ(1, job.rank);
  EXPECT_TRUE(job.has("views"));
  EXPECT_FALSE(job.has("mpi"));
  EXPECT_EQ((std::vector<std::int64_t>{1, 28, 28}), job.input);
  EXPECT_THROW(read_loop_job("{}"), nlohmann::json::exception);
}

}  // namespace
}  // namespace phalanx::bench_train
