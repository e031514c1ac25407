// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_native_batch_norm_legit_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm_cpu_dispatch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <tuple>

#include "framework/kernels/arguments.h"
#include "framework/kernels/registrations.h"
#include "framework/kernels/vector_normalization.h"

namespace phalanx::kernels {
namespace {

using Normalized = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // result, means, inverse standard deviations

constexpr std::int64_t kShortestRow = 16;  // shorter ones leave vectors empty

// An optional tensor with one value for each channel.
class PerChannel {
 public:
  explicit PerChannel(const std::optional<at::Tensor>& tensor) {
    if (tensor && tensor->defined()) tensor_ = *tensor;
  }

  // Returns false if LibTorch must compute, or refuse, the operation.
  bool is_usable(std::int64_t channels) const {
    return !tensor_.defined() || (tensor_.scalar_type() == at::kFloat && tensor_.is_cpu() && tensor_.dim() == 1 &&
                                  tensor_.size(0) == channels && tensor_.is_contiguous());
  }

  float at(std::int64_t channel, float otherwise) const {
    return tensor_.defined() ? tensor_.const_data_ptr<float>()[channel] : otherwise;
  }

  // Updates the running value of a channel towards `value`.
  void follow(std::int64_t channel, double value, double momentum) const {
    if (!tensor_.defined()) return;
    float& running = tensor_.mutable_data_ptr<float>()[channel];
    running = static_cast<float>(momentum * value + (1 - momentum) * static_cast<double>(running));
  }

 private:
  at::Tensor tensor_;
};

struct BatchNorm {
  PerChannel weight;
  PerChannel bias;
  PerChannel running_mean;
  PerChannel running_variance;
  double momentum;
  double epsilon;

  bool takes(const at::Tensor& x) const {
    if (x.dim() < 3 || !is_contiguous_float(x)) return false;
    const auto channels = x.size(1);
    return x.numel() / (x.size(0) * channels) >= kShortestRow && weight.is_usable(channels) &&
           bias.is_usable(channels) && running_mean.is_usable(channels) && running_variance.is_usable(channels);
  }

  Normalized compute(const at::Tensor& x) const {
    const auto images = x.size(0), channels = x.size(1), pixels = x.numel() / (images * channels);
    Normalized result{at::empty_like(x), at::empty({channels}, x.options()), at::empty({channels}, x.options())};
    const auto* const from = x.const_data_ptr<float>();
    auto* const to = std::get<0>(result).mutable_data_ptr<float>();
    auto* const means = std::get<1>(result).mutable_data_ptr<float>();
    auto* const inverses = std::get<2>(result).mutable_data_ptr<float>();
    const vector::Rows rows{.count = images, .length = pixels, .stride = channels * pixels};
    const auto grain = std::max<std::int64_t>(1, kElementsAThread / (images * pixels));
    at::parallel_for(0, channels, grain, [&](std::int64_t begin, std::int64_t end) {
      for (auto c = begin; c < end; ++c) {
        const auto [mean, variance] = vector::moments(from + c * pixels, rows);
        const double inverse = 1 / std::sqrt(variance + epsilon);
        const double factor = inverse * static_cast<double>(weight.at(c, 1));
        means[c] = static_cast<float>(mean);
        const double correction = static_cast<double>(means[c]) - mean;
        const vector::Line line{.center = means[c],
                                .factor = static_cast<float>(factor),
                                .offset = static_cast<float>(static_cast<double>(bias.at(c, 0)) + correction * factor)};
        vector::transform(from + c * pixels, to + c * pixels, rows, line);
        inverses[c] = static_cast<float>(inverse);
        const auto count = static_cast<double>(images * pixels);
        running_mean.follow(c, mean, momentum);
        running_variance.follow(c, variance * (count / (count - 1)), momentum);
      }
    });
    return result;
  }
};

using OptionalTensor = std::optional<at::Tensor>;

Normalized native_batch_norm(const at::Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias,
                             const OptionalTensor& running_mean, const OptionalTensor& running_variance, bool training,
                             double momentum, double epsilon) {
  const BatchNorm norm{PerChannel(weight),           PerChannel(bias), PerChannel(running_mean),
                       PerChannel(running_variance), momentum,         epsilon};
  if (training && norm.takes(x)) return norm.compute(x);
  return at::cpu::native_batch_norm(x, weight, bias, running_mean, running_variance, training, momentum, epsilon);
}

Normalized legit_batch_norm(const at::Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias,
                            at::Tensor& running_mean, at::Tensor& running_variance, bool training, double momentum,
                            double epsilon) {
  return native_batch_norm(x, weight, bias, running_mean, running_variance, training, momentum, epsilon);
}

Normalized legit_batch_norm_without_running(const at::Tensor& x, const OptionalTensor& weight,
                                            const OptionalTensor& bias, bool training, double momentum,
                                            double epsilon) {
  return native_batch_norm(x, weight, bias, {}, {}, training, momentum, epsilon);
}

}  // namespace

void add_normalization(torch::Library& library) {
  library.impl("native_batch_norm", TORCH_FN(native_batch_norm));
  library.impl("_native_batch_norm_legit", TORCH_FN(legit_batch_norm));
  library.impl("_native_batch_norm_legit.no_stats", TORCH_FN(legit_batch_norm_without_running));
}

}  // namespace phalanx::kernels
