// SPDX-License-Identifier: Apache-2.0
#include "models/tensor_parallel_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>

#include <utility>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/parallel/autograd_collectives.h"
#include "framework/parallel/overlapped_linear.h"
#include "models/keep_shard.h"

namespace phalanx {
namespace {

constexpr std::pair<const char*, TensorStyle> kStyles[] = {{"column", TensorStyle::kColumn},
                                                           {"column_gathered", TensorStyle::kColumnGathered},
                                                           {"row", TensorStyle::kRow},
                                                           {"vocabulary", TensorStyle::kVocabulary}};

constexpr std::int64_t kPositions = -2;  // dimension of [..., positions, features]

std::string divisors_of(std::int64_t number) {
  std::vector<std::string> divisors;
  for (std::int64_t i = 1; i <= number; ++i) {
    if (number % i == 0) divisors.push_back(std::to_string(i));
  }
  return join(divisors, ", ");
}

std::vector<std::int64_t> sizes_of_parts(std::int64_t size, int ranks) {
  std::vector<std::int64_t> sizes;
  for (int rank = 0; rank < ranks; ++rank) sizes.push_back(nearly_equal_part(size, rank, ranks).count);
  return sizes;
}

void refuse_if_less_than_ranks(std::int64_t size, const char* what, int ranks) {
  if (size >= ranks) return;
  throw ConfigError("has " + std::to_string(size) + " " + what + ", too few for mesh.tensor: " + std::to_string(ranks));
}

// Returns this rank's ranges of a dimension of `size` that has this `grain`.
std::vector<Placement::Range> ranges_of(std::int64_t size, Grain grain, const Communicator& group) {
  const auto pack = size / grain.packs, units = pack / grain.unit;
  if (units % group.size() != 0) {
    throw ConfigError("has " + std::to_string(units) + (grain.unit > 1 ? " heads" : " features") +
                      ", which cannot be divided among mesh.tensor: " + std::to_string(group.size()) + "; use one of " +
                      divisors_of(units));
  }
  const auto count = units / group.size() * grain.unit;
  std::vector<Placement::Range> ranges;
  for (std::int64_t i = 0; i < grain.packs; ++i) ranges.push_back({i * pack + group.rank() * count, count});
  return ranges;
}

}  // namespace

TensorStyle parse_style(const std::string& style) {
  std::vector<std::string> known;
  for (const auto& [name, value] : kStyles) {
    if (style == name) return value;
    known.emplace_back(name);
  }
  throw ConfigError("\"" + style + "\" is not a style; known styles: " + join(known, ", "));
}

ShardedWeights shard_weights(TensorStyle style, const CommunicatorPtr& group, const at::Tensor& weight,
                             const at::Tensor& bias, std::int64_t out, Grain grain) {
  const bool row = style == TensorStyle::kRow;
  const std::int64_t dim = row ? 1 - out : out, size = weight.size(dim);
  ShardedWeights sharded;
  std::vector<Placement::Range> ranges;
  if (style == TensorStyle::kColumnGathered) {
    refuse_if_less_than_ranks(size, "features", group->size());
    ranges.push_back(nearly_equal_part(size, group->rank(), group->size()));
    sharded.sizes = sizes_of_parts(size, group->size());
  } else {
    ranges = ranges_of(size, grain, *group);
  }
  auto& placements = sharded.placements;
  placements["weight"] = {.shape = weight.sizes().vec(), .dim = dim, .ranges = ranges};
  keep_shard(weight, placements.at("weight"));
  if (!row && bias.defined()) {
    placements["bias"] = {.shape = bias.sizes().vec(), .dim = 0, .ranges = ranges};
    keep_shard(bias, placements.at("bias"));
  }
  return sharded;
}

Placements TensorParallelLinear::shard(TensorStyle style, const CommunicatorPtr& group, const at::Tensor& weight,
                                       const at::Tensor& bias) {
  if (style == TensorStyle::kVocabulary) throw ConfigError("is a linear layer, which cannot be divided by vocabulary");
  if (adapter_) throw ConfigError("has an adapter of lora, and cannot be divided; leave mesh.tensor at 1");
  style_ = style;
  group_ = group;
  auto sharded = shard_weights(style, group, weight, bias, layout_ == WeightLayout::kOutIn ? 0 : 1, grain_);
  sizes_ = std::move(sharded.sizes);
  return std::move(sharded.placements);
}

at::Tensor TensorParallelLinear::forward(const at::Tensor& input, const at::Tensor& weight,
                                         const at::Tensor& bias) const {
  if (!group_) {
    const at::Tensor output = apply_linear(input, weight, bias, layout_);
    return adapter_ ? output + adapter_(input) : output;
  }
  const auto matrix = [&] { return layout_ == WeightLayout::kOutIn ? weight.t() : weight; };
  const bool overlaps = positions_ && overlaps_;
  if (style_ == TensorStyle::kRow) {
    const auto sum_of = [&](const at::Tensor& partial) {
      return positions_ ? sum_and_scatter(partial, kPositions, group_) : sum_over_ranks(partial, group_);
    };
    const at::Tensor sum =
        overlaps ? scattered_product(input, matrix(), group_) : sum_of(apply_linear(input, weight, {}, layout_));
    if (!bias.defined()) return sum;
    // The gradient of the bias is summed over all positions.
    return sum + (positions_ ? copy_to_ranks(bias, group_) : bias);
  }
  if (overlaps && style_ == TensorStyle::kColumn) {
    const at::Tensor product = gathered_product(input, matrix(), group_);
    return bias.defined() ? product + bias : product;
  }
  const at::Tensor whole = positions_ ? gather_summed(input, kPositions, group_) : copy_to_ranks(input, group_);
  const at::Tensor output = apply_linear(whole, weight, bias, layout_);
  return style_ == TensorStyle::kColumn ? output : gather_parts(output, -1, group_, sizes_);
}

Placements TensorParallelEmbedding::shard(TensorStyle style, const CommunicatorPtr& group, const at::Tensor& weight) {
  if (style != TensorStyle::kVocabulary) throw ConfigError("is an embedding, which can only be divided by vocabulary");
  refuse_if_less_than_ranks(weight.size(0), "rows", group->size());
  group_ = group;
  rows_ = nearly_equal_part(weight.size(0), group->rank(), group->size());
  sizes_ = sizes_of_parts(weight.size(0), group->size());
  Placements placements{{"weight", {.shape = weight.sizes().vec(), .dim = 0, .ranges = {rows_}}}};
  keep_shard(weight, placements.at("weight"));
  return placements;
}

at::Tensor TensorParallelEmbedding::look_up(const at::Tensor& indices, const at::Tensor& weight) const {
  if (!group_) return at::embedding(weight, indices);
  const at::Tensor others = (indices < rows_.begin).logical_or(indices >= rows_.begin + rows_.count);
  const at::Tensor own = (indices - rows_.begin).masked_fill(others, 0);
  const at::Tensor partial = at::embedding(weight, own).masked_fill(others.unsqueeze(-1), 0);
  return positions_ ? sum_and_scatter(partial, kPositions, group_) : sum_over_ranks(partial, group_);
}

at::Tensor TensorParallelEmbedding::logits(const at::Tensor& x, const at::Tensor& weight) const {
  if (!group_) return apply_linear(x, weight, /*bias=*/{});
  const at::Tensor whole = positions_ ? gather_summed(x, kPositions, group_) : copy_to_ranks(x, group_);
  const at::Tensor own = apply_linear(whole, weight, /*bias=*/{});
  return gathers_ ? gather_parts(own, -1, group_, sizes_) : own;
}

VocabularyShardPtr TensorParallelEmbedding::keep_logits_sharded() {
  if (!group_) return nullptr;
  gathers_ = false;
  return std::make_shared<VocabularyShard>(VocabularyShard{.group = group_, .sizes = sizes_});
}

}  // namespace phalanx
