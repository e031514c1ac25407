// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "framework/base/config/config.h"
#include "tools/bench_train/system.h"

namespace phalanx::bench_train {
namespace {

TEST(Systems, AllHaveAConfigForAllWorkloads) {
  for (const auto& workload : workloads()) {
    for (const auto& system : systems()) {
      if (system.framework != Framework::kPhalanx || !applies(system, workload)) continue;
      SCOPED_TRACE(workload.name + " by " + system.name);
      auto config = make_config(workload, system, 2);
      EXPECT_EQ(system.alone ? workload.batch : 2 * workload.batch, config.train.global_batch_size);
      EXPECT_EQ(1, config.launch.threads);
      // A rank reads the same config from the dump.
      ExperimentConfig read;
      config::load_text(read, config::dump(config), "dumped");
      EXPECT_EQ(config::dump(config), config::dump(read));
    }
  }
}

TEST(Systems, PeersSupportSomeWorkloads) {
  const auto applies_to = [](const char* system, const char* workload) {
    return applies(find_system(system), find_workload(workload));
  };
  for (const char* workload : {"mlp", "lenet", "char_lm", "gpt"}) EXPECT_TRUE(applies_to("jax", workload));
  for (const char* workload : {"lstm", "resnet18", "zoo_mlp"}) EXPECT_FALSE(applies_to("jax", workload));
  for (const char* workload : {"lstm", "resnet18"}) EXPECT_TRUE(applies_to("torch_process", workload));
  EXPECT_FALSE(applies_to("torch_process", "zoo_mlp"));
  for (const char* workload : {"mlp", "lenet", "char_lm"}) {
    for (const char* system : {"cpp_phalanx", "cpp_reducer", "cpp_mpi"}) EXPECT_TRUE(applies_to(system, workload));
  }
  for (const char* workload : {"gpt", "resnet18", "zoo_mlp"}) EXPECT_FALSE(applies_to("cpp_phalanx", workload));
  EXPECT_TRUE(applies_to("phalanx_libtorch_kernels", "zoo_mlp"));
}

TEST(Systems, OptionsReachTheConfig) {
  const auto& workload = find_workload("resnet18");
  EXPECT_EQ("overlapped", make_config(workload, find_system("phalanx_overlapped"), 2).strategy.selected());
  EXPECT_EQ("local_sgd", make_config(workload, find_system("phalanx_local_sgd"), 2).strategy.selected());
  EXPECT_EQ("single", make_config(workload, find_system("no_communication"), 2).strategy.selected());
  EXPECT_EQ(3, make_config(find_workload("gpt"), find_system("phalanx_tensor"), 3).mesh.tensor);
  EXPECT_EQ(100, make_config(workload, find_system("phalanx_checkpoints"), 2).checkpoint.every_steps);
  EXPECT_TRUE(make_config(workload, find_system("phalanx_copies"), 2).faults.shrinks());
  EXPECT_TRUE(make_config(workload, find_system("phalanx_shrink"), 2).faults.shrinks());
}

TEST(Systems, OnlyDefaultsOfTheModelDiffer) {
  const auto& workload = find_workload("char_lm");
  auto as_peer = make_config(workload, find_system("phalanx"), 2);
  auto own = make_config(workload, find_system("phalanx_defaults"), 2);
  EXPECT_NE(std::string::npos, config::dump(as_peer).find("attention: explicit"));
  EXPECT_NE(std::string::npos, config::dump(own).find("attention: sdpa"));
}

}  // namespace
}  // namespace phalanx::bench_train
