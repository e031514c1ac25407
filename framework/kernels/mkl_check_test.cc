// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/mkl_check.h"

#include <ATen/Context.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "framework/kernels/kernels.h"

namespace phalanx::kernels {
namespace {

void multiply() {
  const at::Tensor ones = at::ones({64, 64});
  if (at::mm(ones, ones).sum().item<float>() != 64 * 64 * 64) std::exit(3);
}

void expect(bool holds, int status) {
  if (!holds) std::exit(status);
}

// MKL asks once in a process, so each test runs in a separate process.
class MklCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (!at::hasMKL()) GTEST_SKIP() << "this LibTorch has no MKL";
  }
};

TEST_F(MklCheck, IsMadeByTheFirstProductAndAnsweredByThisLibrary) {
  const auto body = [] {
    expect(!mkl_has_asked(), 4);
    multiply();
    expect(mkl_has_asked(), 5);
    std::exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(MklCheck, IsAnsweredWithYesOnDemand) {
  const auto body = [] {
    expect(run_mkl_as_on_intel(), 4);
    multiply();
    expect(mkl_has_asked(), 5);
    expect(run_mkl_as_on_intel(), 6);
    std::exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(MklCheck, CannotBeAnsweredAgain) {
  const auto body = [] {
    multiply();
    expect(!run_mkl_as_on_intel(), 4);
    std::exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(MklCheck, IsAnsweredAccordingToConfigAndProcessor) {
  const auto body = [] {
    expect(kernels_in_use() == "libtorch", 4);
    const Plan plan = use_kernels(kAuto);
    expect(plan.vector_code && plan.mkl_as_on_intel == this_processor().is_amd(), 5);
    expect(kernels_in_use() == plan.summary(), 6);
    multiply();
    expect(use_kernels(kAuto).summary() == plan.summary(), 7);
    std::exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(MklCheck, IsLeftToMklWithTheKernelsOfLibTorch) {
  const auto body = [] {
    const Plan plan = use_kernels(kLibTorch);
    expect(!plan.vector_code && !plan.mkl_as_on_intel, 4);
    multiply();
    expect(!run_mkl_as_on_intel(), 5);
    std::exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(MklCheck, DoesNotChangeTheKernelsOfAProcessTwice) {
  const auto body = [] {
    use_kernels(kAuto);
    try {
      use_kernels(kLibTorch);
    } catch (const std::exception&) {
      std::exit(0);
    }
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace phalanx::kernels
