// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/sync_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/batch_norm_update_stats.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "framework/parallel/batch_variance.h"

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Returns the dtype in which statistics are applied to an input.
at::ScalarType precision_of(const at::Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// Moments of the values of each channel, [C] float64, and the number of values, [] float64. All of them are on the
// device of the input: the host does not wait for them.
struct Moments {
  at::Tensor count, mean, squares;  // squares: sums of squared differences from the mean
};

// Without values, moments are zero.
Moments combined(const Moments& a, const Moments& b) {
  const at::Tensor count = a.count + b.count, divisor = count.clamp_min(1);
  const at::Tensor delta = b.mean - a.mean;
  return {count, a.mean + delta * (b.count / divisor),
          a.squares + b.squares + delta * delta * (a.count * b.count / divisor)};
}

// Returns [1 + 2 C] float64: count, means, squares.
at::Tensor own_moments(const at::Tensor& input, std::int64_t valid) {
  const auto channels = input.size(1);
  const auto kind = input.options().dtype(at::kDouble);
  if (valid == 0) return at::zeros({1 + 2 * channels}, kind);
  const at::Tensor samples = input.narrow(0, 0, valid).to(precision_of(input));
  const auto [mean, variance] = at::batch_norm_update_stats(samples, {}, {}, 0);
  const auto count = static_cast<double>(samples.numel() / channels);
  const at::Tensor first = at::full({1}, count, kind);
  return at::concat({first, mean.to(at::kDouble), variance.to(at::kDouble) * count});
}

Moments moments_of_all(const at::Tensor& input, const BatchStatistics& statistics) {
  const auto channels = input.size(1);
  const at::Tensor all = at::empty({statistics.group->size(), 1 + 2 * channels}, input.options().dtype(at::kDouble));
  statistics.group->all_gather(all, own_moments(input, statistics.valid)).wait();
  std::optional<Moments> moments;
  for (const auto& row : all.unbind(0)) {
    const Moments more{row[0], row.narrow(0, 1, channels), row.narrow(0, 1 + channels, channels)};
    moments = moments ? combined(*moments, more) : more;
  }
  return *moments;
}

// Reads the number of values only if it may be 1, which all ranks find: none of them has more than one.
void require_variance(const Moments& moments, const at::Tensor& input, std::int64_t valid) {
  const auto own = valid == 0 ? 0 : input.narrow(0, 0, valid).numel() / std::max<std::int64_t>(1, input.size(1));
  if (own <= 1) phalanx::require_variance(moments.count.item<double>(), input);
}

// Returns the mean and variance with which the batch is normalised, [C].
std::pair<at::Tensor, at::Tensor> normal_of(const Moments& moments, const at::Tensor& input,
                                            const RunningStatistics& running) {
  const auto kind = input.options().dtype(precision_of(input));
  const bool runs = running.mean.defined();
  const at::Tensor mean = runs ? running.mean : at::zeros({input.size(1)}, kind),
                   variance = runs ? running.variance : at::ones({input.size(1)}, kind), any = moments.count > 0;
  return {at::where(any, moments.mean.to(kind.dtype()), mean.to(kind.dtype())),
          at::where(any, (moments.squares / moments.count.clamp_min(1)).to(kind.dtype()), variance.to(kind.dtype()))};
}

void keep(const Moments& moments, const RunningStatistics& running) {
  if (!running.mean.defined()) return;
  at::Tensor mean = running.mean, variance = running.variance;
  const at::Tensor weight = (moments.count > 0).to(mean.scalar_type()) * running.momentum;
  mean.lerp_(moments.mean.to(mean.scalar_type()), weight);
  variance.lerp_((moments.squares / (moments.count - 1).clamp_min(1)).to(variance.scalar_type()), weight);
}

struct Shared final : torch::CustomClassHolder {
  explicit Shared(BatchStatistics of) : statistics(std::move(of)) {}
  BatchStatistics statistics;  // the same as in forward
};

// Returns a tensor with one number per channel in a shape that can be combined with [n, C, ...].
at::Tensor along(const at::Tensor& channels, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = channels.numel();
  return channels.to(precision_of(input)).view(shape);
}

class SyncBatchNorm final : public torch::autograd::Function<SyncBatchNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, const RunningStatistics& running, double eps,
                            const BatchStatistics& statistics) {
    const Moments moments = moments_of_all(input, statistics);
    require_variance(moments, input, statistics.valid);
    const auto [mean, variance] = normal_of(moments, input, running);
    keep(moments, running);
    context->save_for_backward({input, weight, mean, variance, moments.count});
    context->saved_data["eps"] = eps;
    context->saved_data["shared"] = c10::IValue::make_capsule(c10::make_intrusive<Shared>(statistics));
    return std::get<0>(at::native_batch_norm(input, weight, bias, mean, variance, /*training=*/false, 0, eps));
  }

  // With xhat = (x - mean) / deviation, and sums over all samples:
  //   dx = weight / deviation * (dy - sum(dy) / count - xhat * sum(dy * xhat) / count)
  // The first of the three terms is the gradient of batch norm with given statistics. Its kernel computes the sums too.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &input = saved[0], &weight = saved[1], &mean = saved[2], &variance = saved[3], &count = saved[4];
    const double eps = context->saved_data["eps"].toDouble();
    const auto capsule = context->saved_data["shared"].toCapsule();
    const auto& shared = static_cast<const Shared&>(*capsule);
    auto [grad_input, grad_weight, grad_bias] =
        at::native_batch_norm_backward(gradients[0].to(input.scalar_type()), input, weight, mean, variance, {}, {},
                                       /*train=*/false, eps, {true, true, true});
    const at::Tensor sums = at::concat({grad_bias, grad_weight}).to(at::kDouble);
    shared.statistics.group->all_reduce(sums, Reduction::kSum).wait();
    grad_input = with_statistics(grad_input, input, shared, sums / count.clamp_min(1), weight, mean,
                                 (variance.to(at::kDouble) + eps).rsqrt());
    return {grad_input, grad_weight, grad_bias, {}, {}, {}};
  }

 private:
  // Adds the other two terms to the rows that count in the statistics. means: [2 C], of dy and of dy * xhat.
  static at::Tensor with_statistics(const at::Tensor& grad_input, const at::Tensor& input, const Shared& shared,
                                    const at::Tensor& means, const at::Tensor& weight, const at::Tensor& mean,
                                    const at::Tensor& inverse) {
    const auto channels = input.size(1), valid = shared.statistics.valid;
    const at::Tensor slope = weight.to(at::kDouble) * inverse;
    const at::Tensor by_input = -slope * inverse * means.narrow(0, channels, channels);
    const at::Tensor constant = -slope * means.narrow(0, 0, channels) - by_input * mean;
    const at::Tensor whole = grad_input.to(precision_of(input));  // never shares memory with an input
    whole.narrow(0, 0, valid)
        .add_(along(constant, input))
        .addcmul_(input.narrow(0, 0, valid).to(precision_of(input)), along(by_input, input));
    return whole.to(grad_input.scalar_type());
  }
};

}  // namespace

at::Tensor sync_batch_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                           const RunningStatistics& running, double eps, const BatchStatistics& statistics) {
  TORCH_CHECK(statistics.valid >= 0 && statistics.valid <= input.size(0), "sync_batch_norm: there cannot be ",
              statistics.valid, " samples in ", input.size(0), " rows");
  return SyncBatchNorm::apply(input, weight, bias, running, eps, statistics);
}

}  // namespace phalanx
