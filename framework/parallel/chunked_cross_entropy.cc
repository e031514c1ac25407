// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/chunked_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log_softmax.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "framework/parallel/padded_columns.h"

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kRowsTogether = 256;  // fills GPUs, which process one or two rows on each multiprocessor

// Calls function(first row, number of rows) for one chunk after the other.
template <class Function>
void for_each_chunk(const at::Tensor& logits, std::int64_t chunk, const Function& function) {
  std::int64_t rows = std::max<std::int64_t>(chunk / std::max<std::int64_t>(logits.size(1), 1), 1);
  if (rows > kRowsTogether) rows -= rows % kRowsTogether;
  for (std::int64_t begin = 0; begin < logits.size(0); begin += rows) {
    function(begin, std::min(rows, logits.size(0) - begin));
  }
}

class ChunkedCrossEntropy final : public torch::autograd::Function<ChunkedCrossEntropy> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& target,
                            std::int64_t ignored, double smoothing, std::int64_t chunk) {
    const auto dtype = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor counted = target.ne(ignored), skipped = counted.logical_not();
    const at::Tensor column = target.masked_fill(skipped, 0).unsqueeze(1);  // [n, 1]
    // The logarithm of the sum of a row's exponentials, and the row's loss.
    const at::Tensor normalizers = at::empty({logits.size(0), 1}, logits.options().dtype(dtype));
    const at::Tensor losses = at::empty_like(normalizers);
    for_each_chunk(logits, chunk, [&](std::int64_t begin, std::int64_t rows) {
      const at::Tensor some = logits.narrow(0, begin, rows), wanted = column.narrow(0, begin, rows);
      const at::Tensor logarithms = at::log_softmax(some, 1, dtype), own = logarithms.gather(1, wanted);
      at::Tensor loss = own * (smoothing - 1);
      if (smoothing > 0) loss = loss - logarithms.mean(1, /*keepdim=*/true) * smoothing;
      losses.narrow(0, begin, rows).copy_(loss);
      normalizers.narrow(0, begin, rows).copy_(some.gather(1, wanted).to(dtype).sub_(own));
    });
    const at::Tensor count = counted.sum().to(dtype);
    context->save_for_backward({logits, column, normalizers, counted.unsqueeze(1) / count});
    context->saved_data["smoothing"] = smoothing;
    context->saved_data["chunk"] = chunk;
    return losses.masked_fill(skipped.unsqueeze(1), 0).sum() / count;
  }

  // The gradient of each row is its softmax minus the target distribution, times the gradient of the row's loss. This
  // factor is multiplied within the exponential, which saves reading and writing everything once more.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &logits = saved[0], &column = saved[1], &normalizers = saved[2];
    const double smoothing = context->saved_data["smoothing"].toDouble();
    const double everywhere = smoothing / static_cast<double>(logits.size(1));
    const at::Tensor factors = saved[3] * gradients[0], shifts = normalizers - factors.log();
    const at::Tensor gradient =
        empty_padded(logits.size(0), logits.size(1), std::max(logits.stride(0), logits.size(1)), logits.options());
    for_each_chunk(logits, context->saved_data["chunk"].toInt(), [&](std::int64_t begin, std::int64_t rows) {
      const auto of_rows = [&](const at::Tensor& all) { return all.narrow(0, begin, rows); };
      const at::Tensor some = of_rows(logits), wanted = of_rows(column), factor = of_rows(factors);
      const at::Tensor shifted = some - of_rows(shifts);  // in the dtype of shifts
      at::Tensor result = of_rows(gradient), own = shifted.gather(1, wanted).exp_();
      own.sub_(factor * (1 - smoothing + everywhere));
      if (smoothing > 0) {
        result.copy_(shifted.exp_().sub_(factor * everywhere));
      } else {
        at::exp_out(result, shifted);
      }
      result.scatter_(1, wanted, own.to(result.scalar_type()));
    });
    return {gradient, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor chunked_cross_entropy(const at::Tensor& logits, const at::Tensor& target, std::int64_t ignored,
                                 double smoothing, std::int64_t chunk) {
  return ChunkedCrossEntropy::apply(logits, target, ignored, smoothing, chunk);
}

}  // namespace phalanx
