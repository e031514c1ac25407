// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/attention_with_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "framework/parallel/autocast.h"

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct DroppingAttention final : torch::CustomClassHolder {
  DroppingAttention(AttentionPattern pattern, DropoutNumbers dropout, std::int64_t block_bytes)
      : pattern(std::move(pattern)), dropout(std::move(dropout)), block_bytes(block_bytes) {}
  AttentionPattern pattern;
  DropoutNumbers dropout;
  std::int64_t block_bytes;
};
using DroppingAttentionPtr = c10::intrusive_ptr<DroppingAttention>;

c10::ScalarType type_of_weights(const at::Tensor& query) {
  return query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// Returns the size of nearly equal parts of `count`, none of which is above `most`.
std::int64_t size_of_parts(std::int64_t count, std::int64_t most) {
  const auto parts = (count + most - 1) / most;
  return (count + parts - 1) / parts;
}

// Calls function(block) for one block after the other: as many whole samples as fit, or as many queries of a sample.
template <class Function>
void for_each_query_block(const at::Tensor& query, const at::Tensor& key, std::int64_t block_bytes,
                          const Function& function) {
  const auto samples = query.size(0), queries = query.size(2);
  if (query.numel() == 0) return;
  const auto of_query = std::max<std::int64_t>(
      query.size(1) * key.size(2) * static_cast<std::int64_t>(c10::elementSize(type_of_weights(query))), 1);
  const auto fit = std::max<std::int64_t>(block_bytes / of_query, 1);
  const auto some_samples = size_of_parts(samples, std::max<std::int64_t>(fit / queries, 1));
  const auto some_queries = size_of_parts(queries, std::min(fit, queries));
  for (std::int64_t sample = 0; sample < samples; sample += some_samples) {
    for (std::int64_t first = 0; first < queries; first += some_queries) {
      function(QueryBlock{.first_sample = sample,
                          .samples = std::min(some_samples, samples - sample),
                          .first_query = first,
                          .queries = std::min(some_queries, queries - first)});
    }
  }
}

// Return a block's part of a tensor [n, heads, positions, width]: at its queries, or at all positions.
at::Tensor at_queries(const at::Tensor& all, const QueryBlock& block) {
  return all.narrow(0, block.first_sample, block.samples).narrow(2, block.first_query, block.queries);
}
at::Tensor at_samples(const at::Tensor& all, const QueryBlock& block) {
  return all.narrow(0, block.first_sample, block.samples);
}

// Returns a tensor [n, heads, ...] as matrices [n heads, ...].
at::Tensor matrices(const at::Tensor& by_head) { return by_head.flatten(0, 1); }

// The inputs in contiguous memory. Queries are scaled, which is less work than to scale the scores.
struct AttentionInputs {
  AttentionInputs(const at::Tensor& of_query, const at::Tensor& of_key, const at::Tensor& of_value)
      : scale(1 / std::sqrt(static_cast<double>(of_query.size(3)))),
        query(of_query.contiguous() * scale),
        key(of_key.contiguous()),
        value(of_value.contiguous()) {}

  double scale;
  at::Tensor query, key, value;
};

at::Tensor weights_of(const AttentionInputs& inputs, const AttentionPattern& pattern, const QueryBlock& block) {
  const at::Tensor keys = matrices(at_samples(inputs.key, block));
  const at::Tensor scores = at::bmm(matrices(at_queries(inputs.query, block)), keys.transpose(1, 2))
                                .view({block.samples, inputs.key.size(1), block.queries, inputs.key.size(2)});
  if (const at::Tensor mask = attention_mask(pattern, inputs.query, inputs.key, block); mask.defined()) {
    scores.masked_fill_(mask.logical_not(), -std::numeric_limits<double>::infinity());
  }
  return scores.to(type_of_weights(inputs.query)).softmax(3);
}

// Returns the factors for the weights of the block.
at::Tensor factors_for(const at::Tensor& weights, const DropoutNumbers& dropout, const at::Tensor& query,
                       const QueryBlock& block) {
  const auto keys = weights.size(3);
  RandomKey key = dropout.key;
  key.first_row += block.first_sample;
  return dropout_factors(weights,
                         {.group_elements = query.size(2) * keys,
                          .first_group = dropout.first_group,
                          .first_element = block.first_query * keys},
                         dropout.rate, dropout.layer, key);
}

class AttentionInBlocks final : public torch::autograd::Function<AttentionInBlocks> {
 public:
  // The result has the strides of query, because the layer that follows joins the heads of each position.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const DroppingAttentionPtr& settings) {
    const Autocast plain(query.device().type(), at::kFloat);
    const AttentionInputs inputs(query, key, value);
    const at::Tensor output = at::empty_like(query);
    for_each_query_block(query, key, settings->block_bytes, [&](const QueryBlock& block) {
      at::Tensor weights = weights_of(inputs, settings->pattern, block);
      weights.mul_(factors_for(weights, settings->dropout, query, block));
      const at::Tensor part = at_queries(output, block);
      const at::Tensor values = matrices(at_samples(inputs.value, block));
      part.copy_(at::bmm(matrices(weights).to(query.scalar_type()), values).view(part.sizes()));
    });
    context->save_for_backward({query, key, value});
    context->saved_data["settings"] = c10::IValue::make_capsule(settings);
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "attention in blocks has no second derivatives");
    const auto saved = context->get_saved_variables();
    const auto settings =
        c10::static_intrusive_pointer_cast<DroppingAttention>(context->saved_data["settings"].toCapsule());
    const auto type = saved[0].scalar_type(), sums = type_of_weights(saved[0]);
    const Autocast plain(saved[0].device().type(), at::kFloat);
    const AttentionInputs inputs(saved[0], saved[1], saved[2]);
    const at::Tensor of_query = at::empty_like(saved[0]);
    const auto zeros = [&] { return at::zeros(inputs.key.sizes(), inputs.key.options().dtype(sums)); };
    const at::Tensor of_key = zeros(), of_value = zeros();
    for_each_query_block(saved[0], saved[1], settings->block_bytes, [&](const QueryBlock& block) {
      const auto add = [&](const at::Tensor& sum, const at::Tensor& by_query, const at::Tensor& factor) {
        const at::Tensor part = at_samples(sum, block);
        part.add_(at::bmm(by_query.transpose(1, 2), factor).view(part.sizes()));
      };
      const at::Tensor weights = weights_of(inputs, settings->pattern, block);
      at::Tensor factors = factors_for(weights, settings->dropout, saved[0], block);
      const at::Tensor of_output = matrices(at_queries(gradients[0], block));
      at::Tensor of_weights = at::bmm(of_output, matrices(at_samples(inputs.value, block)).transpose(1, 2))
                                  .view(weights.sizes())
                                  .to(sums)
                                  .mul_(factors);
      add(of_value, matrices(factors.mul_(weights)).to(type), of_output);
      factors.reset();
      const at::Tensor of_scores = matrices(at::_softmax_backward_data(of_weights, weights, 3, sums)).to(type);
      of_weights.reset();
      const at::Tensor part = at_queries(of_query, block);
      part.copy_(at::bmm(of_scores, matrices(at_samples(inputs.key, block))).mul_(inputs.scale).view(part.sizes()));
      add(of_key, of_scores, matrices(at_queries(inputs.query, block)));
    });
    return {of_query, of_key.to(type), of_value.to(type), at::Tensor()};
  }
};

// Returns the tensor in the dtype in which products are computed inside an Autocast.
at::Tensor in_autocast_dtype(const at::Tensor& tensor) {
  const auto dtype = Autocast::current(tensor.device().type());
  return dtype == at::kFloat || tensor.scalar_type() == at::kDouble ? tensor : tensor.to(dtype);
}

void check_shapes(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const bool fits = query.dim() == 4 && key.dim() == 4 && key.sizes() == value.sizes() &&
                    query.sizes().slice(0, 2) == key.sizes().slice(0, 2) && query.size(3) == key.size(3);
  if (fits) return;
  throw std::invalid_argument(
      "attention with dropout takes queries [n, heads, t, width], and keys and values [n, heads, s, width]");
}

}  // namespace

at::Tensor attention_with_dropout(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  const AttentionPattern& pattern, const DropoutNumbers& dropout) {
  check_shapes(query, key, value);
  const auto weights = query.size(0) * query.size(1) * query.size(2) * key.size(2);
  const bool is_small =
      weights * static_cast<std::int64_t>(c10::elementSize(type_of_weights(query))) < kAttentionAtOnceBytes;
  return is_small ? attention_at_once(query, key, value, pattern, dropout)
                  : attention_in_blocks(query, key, value, pattern, dropout);
}

at::Tensor attention_at_once(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const AttentionPattern& pattern, const DropoutNumbers& dropout) {
  check_shapes(query, key, value);
  at::Tensor scores = at::matmul(query, key.transpose(2, 3)) / std::sqrt(static_cast<double>(query.size(3)));
  if (const at::Tensor mask = attention_mask(pattern, query, key); mask.defined()) {
    scores = scores.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  }
  const at::Tensor weights = scores.softmax(3);
  const QueryBlock all{.samples = query.size(0), .queries = query.size(2)};
  return at::matmul(weights * factors_for(weights, dropout, query, all), value);
}

at::Tensor attention_in_blocks(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const AttentionPattern& pattern, const DropoutNumbers& dropout,
                               std::int64_t block_bytes) {
  check_shapes(query, key, value);
  return AttentionInBlocks::apply(in_autocast_dtype(query), in_autocast_dtype(key), in_autocast_dtype(value),
                                  c10::make_intrusive<DroppingAttention>(pattern, dropout, block_bytes));
}

}  // namespace phalanx
