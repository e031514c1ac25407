// SPDX-License-Identifier: Apache-2.0
// Kernels are selected once in a process, so each case runs in a separate process.
#include "tools/config/load_checked.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/kernels/kernels.h"
#include "framework/kernels/processor.h"

namespace phalanx {
namespace {

using kernels::kernels_in_use;

enum Outcome { kLoaded = 0, kWrong, kRefused };

// Loads a small config in a separate process, which ends with the outcome, or with kWrong unless `holds` is true then.
void expect_after_loading(const std::vector<std::string>& overrides, Outcome outcome,
                          const std::function<bool()>& holds) {
  const std::string path = ::testing::TempDir() + "/load_checked.yaml";
  std::ofstream(path) << "model: mlp\ndataset: digits\n";
  const auto body = [&] {
    Outcome seen = kLoaded;
    ExperimentConfig config;
    try {
      load_checked(config, {path, overrides});
    } catch (const ConfigError&) {
      seen = kRefused;
    }
    std::exit(holds() ? seen : kWrong);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(outcome), "");
}

TEST(LoadChecked, SelectsTheFastestKernelsByDefault) {
  EXPECT_EQ(kernels_in_use(), kernels::kLibTorch) << "before a config is loaded";
  expect_after_loading({}, kLoaded, [] {
    return kernels_in_use() == kernels::make_plan(kernels::kAuto, kernels::this_processor()).summary();
  });
}

TEST(LoadChecked, SelectsTheKernelsThatTheConfigNames) {
  expect_after_loading({"kernels=libtorch"}, kLoaded, [] {
    try {
      kernels::use_kernels(kernels::kAuto);
    } catch (const Error&) {
      return kernels_in_use() == kernels::kLibTorch;  // the process cannot change them any more
    }
    return false;
  });
}

TEST(LoadChecked, SelectsNothingIfTheConfigIsRefused) {
  expect_after_loading({"train.ema_decay=1"}, kRefused, [] { return kernels_in_use() == kernels::kLibTorch; });
}

}  // namespace
}  // namespace phalanx
