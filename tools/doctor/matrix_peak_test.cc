#include "tools/doctor/matrix_peak.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace phalanx::doctor {
namespace {

TEST(MatrixPeak, IsWhatACoreCanDo) {
  const int threads = at::get_num_threads();
  const double peak = measure_matrix_peak();
  EXPECT_GT(peak, 1e8);
  EXPECT_LT(peak, 1e12);  // 64 float32 operations a cycle at 5 GHz are 0.32e12
  EXPECT_EQ(threads, at::get_num_threads()) << "LibTorch has as many threads as before";
}

}  // namespace
}  // namespace phalanx::doctor
