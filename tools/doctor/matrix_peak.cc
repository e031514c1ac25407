#include "tools/doctor/matrix_peak.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "models/apply_linear.h"

namespace phalanx::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSamples = 9;

// Keeps LibTorch to one thread while it lives.
class OneThread {
 public:
  OneThread() : threads_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_;
};

// Returns the rate of the fastest call: what disturbs a core makes it slower, never faster.
template <class Multiply>
double best_rate(std::int64_t side, const Multiply& multiply) {
  const double n = static_cast<double>(side), operations = 2 * n * n * n;
  multiply();
  double best = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto start = Clock::now();
    multiply();
    best = std::max(best, operations / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace

double measure_matrix_peak() {
  const at::NoGradGuard no_grad;
  const OneThread one_thread;
  double best = 0;
  for (const std::int64_t side : {256, 512, 1024}) {
    const at::Tensor left = at::ones({side, side}), right = at::ones({side, side});
    best = std::max(best, best_rate(side, [&] { at::mm(left, right); }));
    best = std::max(best, best_rate(side, [&] { apply_linear(left, right, {}, WeightLayout::kOutIn); }));
  }
  return best;
}

}  // namespace phalanx::doctor
