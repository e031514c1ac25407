// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "framework/kernels/kernels.h"
#include "framework/testing/backend_under_test.h"

const char* const phalanx::testing::kBackend = "shm";

namespace phalanx {
namespace {

// Computes with our kernels, while the suites of other backends compute with LibTorch's.
class OurKernels final : public ::testing::Environment {
 public:
  void SetUp() override { kernels::use_kernels(kernels::kAuto); }
};
const auto* const our_kernels = ::testing::AddGlobalTestEnvironment(new OurKernels);

}  // namespace
}  // namespace phalanx
