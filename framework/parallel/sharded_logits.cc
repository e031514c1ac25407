// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/sharded_logits.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "framework/parallel/autograd_collectives.h"

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The targets that are classes of this rank, and their numbers here; 0 for targets that are not.
struct OwnTargets {
  OwnTargets(const at::Tensor& target, std::int64_t begin, std::int64_t count)
      : others((target < begin).logical_or(target >= begin + count)),
        column((target - begin).masked_fill(others, 0).unsqueeze(1)) {}

  at::Tensor others, column;  // [n] bool, [n, 1]
};

// Takes logits [n, classes here] and targets [n].
class ShardedCrossEntropy : public torch::autograd::Function<ShardedCrossEntropy> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const at::Tensor& target,
                            const VocabularyShard& parts, std::int64_t ignored, double smoothing) {
    const OwnTargets own(target, parts.begin(), logits.size(1));
    const at::Tensor largest = logits.amax(1);
    parts.group->all_reduce(largest, Reduction::kMax).wait();
    const at::Tensor shares = (logits - largest.unsqueeze(1)).exp_();
    std::vector<at::Tensor> rows{shares.sum(1), logits.gather(1, own.column).squeeze(1).masked_fill(own.others, 0)};
    if (smoothing > 0) rows.push_back(logits.sum(1));
    const at::Tensor sums = at::stack(rows);
    parts.group->all_reduce(sums, Reduction::kSum).wait();
    shares.div_(sums[0].unsqueeze(1));

    const at::Tensor normalizer = largest + sums[0].log();
    at::Tensor losses = normalizer - sums[1];
    if (smoothing > 0) {
      const at::Tensor mean = sums[2] / static_cast<double>(parts.classes());
      losses = losses * (1 - smoothing) + (normalizer - mean) * smoothing;
    }
    const at::Tensor skipped = target.eq(ignored);
    const at::Tensor count = skipped.logical_not().sum().to(losses.scalar_type());
    context->save_for_backward({shares, own.others, own.column, skipped, count});
    context->saved_data["smoothing"] = smoothing;
    context->saved_data["classes"] = parts.classes();
    return losses.masked_fill(skipped, 0).sum() / count;
  }

  // The gradient of each row is its shares of all exponentials minus the target distribution.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &shares = saved[0], &others = saved[1], &column = saved[2], &skipped = saved[3], &count = saved[4];
    const double smoothing = context->saved_data["smoothing"].toDouble();
    at::Tensor gradient = shares - smoothing / static_cast<double>(context->saved_data["classes"].toInt());
    const at::Tensor wanted = others.logical_not().to(shares.scalar_type()).mul_(smoothing - 1);
    gradient.scatter_add_(1, column, wanted.unsqueeze(1));
    gradient.mul_(gradients[0] / count).masked_fill_(skipped.unsqueeze(1), 0);
    return {gradient, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor gather_logits(const at::Tensor& part, const VocabularyShard& parts) {
  return gather_parts(part, -1, parts.group, parts.sizes);
}

// float64 represents both the scores and the numbers of classes exactly.
at::Tensor sharded_argmax(const at::Tensor& part, const VocabularyShard& parts) {
  const at::Tensor best = part.argmax(-1, /*keepdim=*/true);
  const at::Tensor own =
      at::stack({part.gather(-1, best).squeeze(-1).to(at::kDouble), (best.squeeze(-1) + parts.begin()).to(at::kDouble)})
          .contiguous();
  auto sizes = own.sizes().vec();
  sizes.insert(sizes.begin(), parts.group->size());
  const at::Tensor all = at::empty(sizes, own.options());  // [ranks, 2, ...]
  parts.group->all_gather(all, own).wait();
  const at::Tensor rank = all.select(1, 0).argmax(0, /*keepdim=*/true);
  return all.select(1, 1).gather(0, rank).squeeze(0).to(at::kLong);
}

at::Tensor sharded_cross_entropy(const at::Tensor& part, const VocabularyShard& parts, const at::Tensor& target,
                                 std::int64_t ignored, double smoothing) {
  at::Tensor logits = part.flatten(0, -2);
  if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
  return ShardedCrossEntropy::apply(logits, target.flatten(), parts, ignored, smoothing);
}

}  // namespace phalanx
