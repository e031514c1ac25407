// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "models/model.h"
#include "tools/bench_train/options.h"

namespace phalanx::bench_train {
namespace {

Options parse(const std::vector<std::string>& words) {
  return parse_options({.name = "bench_train", .purpose = "", .words = words});
}

void expect_error(const std::vector<std::string>& words, const std::string& message) {
  try {
    parse(words);
    FAIL() << "no error for " << words.front();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string::npos, std::string(error.what()).find(message)) << error.what();
  }
}

TEST(CommandLine, HasDefaults) {
  const auto options = parse({});
  EXPECT_EQ((std::vector<std::string>{"mlp", "lenet", "char_lm", "resnet18"}), options.workloads);
  EXPECT_EQ(2, options.ranks);
  EXPECT_EQ("", options.link);
  EXPECT_EQ("", options.base);
  EXPECT_FALSE(options.uses(Framework::kTorch));
  EXPECT_FALSE(options.uses(Framework::kJax));
}

TEST(CommandLine, PeersFollowTheSystemsAndTheFirstIsTheBase) {
  const auto options = parse({"--systems=no_communication,phalanx,ddp", "--against=ddp,ddp_powersgd"});
  EXPECT_EQ((std::vector<std::string>{"no_communication", "phalanx", "ddp", "ddp_powersgd"}), options.systems);
  EXPECT_EQ("ddp", options.base);
  EXPECT_TRUE(options.uses(Framework::kTorch));
  EXPECT_FALSE(options.uses(Framework::kJax));
}

TEST(CommandLine, ZooIsEveryModelOfTheZoo) {
  const auto options = parse({"--workload=mlp,zoo"});
  auto models = Models::global().names();
  for (const char* program : {"exported", "torchscript"}) std::erase(models, program);
  ASSERT_GT(models.size(), 40u);
  ASSERT_EQ(1 + models.size(), options.workloads.size());
  EXPECT_EQ("mlp", options.workloads[0]);
  for (std::size_t i = 0; i < models.size(); ++i) EXPECT_EQ("zoo_" + models[i], options.workloads[1 + i]);
  EXPECT_EQ((std::vector<std::string>{"zoo_unet"}), parse({"--workload=zoo_unet"}).workloads);
}

TEST(CommandLine, JaxHasASeparateInterpreter) {
  const auto options = parse({"--workload=mlp,resnet18", "--against=jax", "--jax_python=python9"});
  EXPECT_EQ("python9", options.jax_python);
  EXPECT_TRUE(options.uses(Framework::kJax));
  EXPECT_FALSE(options.uses(Framework::kTorch));
}

TEST(CommandLine, TwoHostsAreConnectedByALink) {
  EXPECT_EQ("1gbit", parse({"--hosts=2"}).link);
  EXPECT_EQ("100mbit", parse({"--hosts=2", "--link=100mbit"}).link);
}

TEST(CommandLine, SaysWhatIsWrong) {
  expect_error({"--workload=lenett"}, "did you mean \"lenet\"");
  expect_error({"--systems=phalax"}, "did you mean \"phalanx\"");
  expect_error({"--against=dpp"}, "did you mean \"ddp\"");
  expect_error({"--workload="}, "--workload is empty; choose from");
  expect_error({"--ranks=0"}, "--ranks");
  expect_error({"--seconds=0"}, "--seconds");
  expect_error({"--until_loss=-1"}, "--until_loss");
  expect_error({"--hosts=3"}, "--hosts");
  expect_error({"--hosts=2", "--ranks=3"}, "multiple");
  expect_error({"--python=python3"}, "--against ddp");
  expect_error({"--dataset=mnist"}, "one workload");
  expect_error({"--jax_python=python3", "--against=ddp"}, "--against jax");
  expect_error({"--workload=resnet18", "--against=jax"},
               "jax cannot train any workload of --workload; it can train mlp, lenet, char_lm, gpt");
  expect_error({"--workload=zoo_mlp", "--against=torch_process"},
               "torch_process cannot train any workload of --workload");
  expect_error({"--hosts=2", "--systems=torch_process"}, "torch_process is one process");
  expect_error({"--hosts=2", "--workload=mlp", "--systems=cpp_mpi"}, "cpp_mpi is started by one mpirun");
  expect_error({"--workload=gpt", "--against=cpp_reducer"},
               "cpp_reducer cannot train any workload of --workload; it can train mlp, lenet, char_lm");
  expect_error({"--workload=zoo_mlp", "--dataset=mnist"}, "--dataset cannot be used with workload zoo_mlp");
  expect_error({"more"}, "unexpected argument");
}

}  // namespace
}  // namespace phalanx::bench_train
