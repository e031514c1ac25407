// SPDX-License-Identifier: Apache-2.0
#include "models/matrix_peak.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "models/apply_linear.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

// Limits LibTorch to one thread during its lifetime.
class OneThread {
 public:
  OneThread() : threads_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

// Returns the rate of the fastest call, because disturbances make a core slower, never faster.
template <class Multiply>
double best_rate(std::int64_t side, int samples, const Multiply& multiply) {
  const double n = static_cast<double>(side), operations = 2 * n * n * n;
  multiply();
  double best = 0;
  for (int sample = 0; sample < samples; ++sample) {
    const auto start = Clock::now();
    multiply();
    best = std::max(best, operations / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace

double measure_matrix_peak(PeakEffort effort) {
  const bool quick = effort == PeakEffort::kQuick;
  const int samples = quick ? 3 : 9;
  const at::NoGradGuard no_grad;
  const OneThread one_thread;
  double best = 0;
  for (const std::int64_t side : {512, 256, 1024}) {
    if (quick && side != 512) continue;
    const at::Tensor left = at::ones({side, side}), right = at::ones({side, side});
    best = std::max(best, best_rate(side, samples, [&] { at::mm(left, right); }));
    best = std::max(best, best_rate(side, samples, [&] { apply_linear(left, right, {}, WeightLayout::kOutIn); }));
  }
  return best;
}

}  // namespace phalanx
