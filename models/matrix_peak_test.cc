// SPDX-License-Identifier: Apache-2.0
#include "models/matrix_peak.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(MatrixPeak, IsWithinWhatACoreCanDo) {
  const int threads = at::get_num_threads();
  for (const auto effort : {PeakEffort::kQuick, PeakEffort::kThorough}) {
    const double peak = measure_matrix_peak(effort);
    EXPECT_GT(peak, 1e8);
    EXPECT_LT(peak, 1e12);  // 64 float32 operations a cycle at 5 GHz are 0.32e12
  }
  EXPECT_EQ(threads, at::get_num_threads()) << "the number of LibTorch threads is restored";
}

}  // namespace
}  // namespace phalanx
