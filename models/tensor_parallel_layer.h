// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/partition/placement.h"
#include "framework/partition/vocabulary_shard.h"
#include "models/apply_linear.h"

namespace phalanx {

/// The division of a layer among the P ranks of a tensor group (Shoeybi et al. 2019, arXiv:1909.08053, section 3). x is
/// the input and y the output of the layer, [..., features], or [n, channels, height, width] for convolutions.
///
///   column           each rank has some of the outputs. x is whole, y is sharded. Backward: all_reduce of x's gradient
///   column_gathered  like column, but an all_gather gives each rank the whole y
///   row              each rank has some of the inputs. x is sharded, y is whole: all_reduce of the partial sums. All
///                    ranks have the bias, which is added once
///   vocabulary       each rank has some rows of an embedding; all_reduce of y. Logits of the same weight are gathered,
///                    unless they are kept sharded
///
/// A column layer followed by a row layer, with only elementwise functions or attention by heads between them, needs
/// one all_reduce forward and one backward.
enum class TensorStyle { kColumn, kColumnGathered, kRow, kVocabulary };

/// Throws ConfigError for an unknown style.
TensorStyle parse_style(const std::string& style);

/// With sequence parallelism, the activations outside of these pairs are sharded as well (Korthikanti et al. 2022,
/// Reducing Activation Recomputation in Large Transformer Models, arXiv:2205.05198, section 4.2.2). Each rank has an
/// equal part of the positions of x for column, and of y for row and vocabulary: [..., positions, features]. The
/// all_reduce of y becomes a reduce_scatter, and an all_gather of x precedes column; in backward, each is replaced by
/// the other. The number of bytes stays the same.

class TensorParallelLinear;

/// The units that are never split. The outputs (row: inputs) are `packs` consecutive ranges of equal length, each of
/// which consists of units of length `unit`. A projection to queries, keys and values by heads has {3, features of a
/// head}.
struct Grain {
  std::int64_t packs = 1;
  std::int64_t unit = 1;
};

/// The placements of the weight and bias of a layer that is sharded by column, column_gathered or row.
struct ShardedWeights {
  Placements placements;            // of "weight" and "bias"
  std::vector<std::int64_t> sizes;  // sizes of all ranks' parts of the output; only for column_gathered
};

/// Replaces `weight` and `bias` (may be undefined) by this rank's parts. The outputs are along dimension `out` (0 or 1)
/// of the weight, the inputs along the other one of these two. Throws ConfigError if the ranks cannot have one part
/// each.
ShardedWeights shard_weights(TensorStyle style, const CommunicatorPtr& group, const at::Tensor& weight,
                             const at::Tensor& bias, std::int64_t out, Grain grain = {});

/// A layer that can be sharded.
class TensorParallelLayer {
 public:
  virtual ~TensorParallelLayer() = default;

  /// Keeps this rank's part of each parameter and returns the placements, by names relative to the layer. The layer
  /// must be whole, so this may be called once. Throws ConfigError if the layer does not support the style or has fewer
  /// parts than there are ranks.
  virtual Placements shard(TensorStyle style, const CommunicatorPtr& group) = 0;

  /// Returns the linear part of the layer, to which an adapter can be added, or null if it has none.
  virtual TensorParallelLinear* linear() { return nullptr; }
};

/// The linear part of a layer, whole or sharded. Layers that implement TensorParallelLayer consist of such parts.
class TensorParallelLinear {
 public:
  using Grain = phalanx::Grain;

  explicit TensorParallelLinear(WeightLayout layout) : layout_(layout) {}
  TensorParallelLinear(WeightLayout layout, Grain grain) : layout_(layout), grain_(grain) {}

  /// Replaces `weight` and `bias` (may be undefined) by this rank's parts. The placements are called "weight" and
  /// "bias".
  Placements shard(TensorStyle style, const CommunicatorPtr& group, const at::Tensor& weight, const at::Tensor& bias);

  /// From now on, the whole side of a layer that is sharded by column or row has only this rank's positions. If
  /// `overlap`, the exchange of positions overlaps with the matrix product (framework/parallel/overlapped_linear.h).
  void enable_sequence_parallel(bool overlap) {
    positions_ = true;
    overlaps_ = overlap;
  }

  bool sharded() const { return group_ != nullptr; }

  WeightLayout layout() const { return layout_; }

  /// From now on, adds adapter(input) to the output. The layer must be whole and cannot be sharded later.
  void adapt(std::function<at::Tensor(const at::Tensor& input)> adapter) { adapter_ = std::move(adapter); }

  /// Calls apply_linear(), with the communication of the layer's style before and after it.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) const;

 private:
  WeightLayout layout_;
  Grain grain_;
  TensorStyle style_ = TensorStyle::kColumn;
  CommunicatorPtr group_;            // null: the layer is whole
  std::vector<std::int64_t> sizes_;  // sizes of all ranks' parts of the output
  bool positions_ = false;           // sequence parallelism
  bool overlaps_ = false;            // overlaps the exchange of positions
  std::function<at::Tensor(const at::Tensor& input)> adapter_;
};

/// A table of embeddings, whole or sharded by rows.
class TensorParallelEmbedding {
 public:
  /// Replaces weight [count, width] by this rank's rows.
  Placements shard(TensorStyle style, const CommunicatorPtr& group, const at::Tensor& weight);

  /// From now on, look_up() takes all indices and returns this rank's positions, and logits() takes this rank's
  /// positions. The table must be sharded.
  void enable_sequence_parallel() { positions_ = true; }

  /// Maps indices int64 [...] to [..., width].
  at::Tensor look_up(const at::Tensor& indices, const at::Tensor& weight) const;

  /// Returns the products of x [..., width] with all rows: [..., count].
  at::Tensor logits(const at::Tensor& x, const at::Tensor& weight) const;

  /// From now on, logits() returns only the logits of this rank's rows. Returns null if this rank has all rows.
  VocabularyShardPtr keep_logits_sharded();

 private:
  CommunicatorPtr group_;  // null: the table is whole
  Placement::Range rows_;
  std::vector<std::int64_t> sizes_;
  bool gathers_ = true;     // logits() gathers the parts of all ranks
  bool positions_ = false;  // sequence parallelism
};

}  // namespace phalanx
