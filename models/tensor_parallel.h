// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/parallel/class_parts.h"
#include "framework/parallel/placement.h"
#include "models/apply_linear.h"

namespace phalanx {

/// The division of a layer among the ranks of a tensor group (Shoeybi et al. 2019, arXiv:1909.08053, section 3). P is
/// their number; x the layer's input and y its output, [..., features], or of convolutions [n, channels, height,
/// width].
///
///   column           each has some of the outputs. x is whole, y divided. Backward: all_reduce of x's gradient
///   column_gathered  the same, and each gets all of y by an all_gather
///   row              each has some of the inputs. x is divided, y whole: all_reduce of the partial sums. The bias,
///                    which all have, is added once
///   vocabulary       each has some rows of an embedding; all_reduce of y. Logits of the same weight are gathered,
///                    unless they are left divided
///
/// A column layer and the row layer after it, with only elementwise functions or attention by heads between, need one
/// all_reduce forward and one backward.
enum class TensorStyle { kColumn, kColumnGathered, kRow, kVocabulary };

/// Throws ConfigError for a word that is none of those above.
TensorStyle parse_style(const std::string& style);

/// Where layers share positions, what lies outside of these pairs is divided as well (Korthikanti et al. 2022, Reducing
/// Activation Recomputation in Large Transformer Models, arXiv:2205.05198, section 4.2.2): x of column and y of row and
/// vocabulary are of an equal part of the positions, [..., positions, features]. The all_reduce of y becomes a
/// reduce_scatter, and an all_gather of x comes before column, each with the other for backward: the same bytes.

class DividedLinear;

/// Units that are never divided: the outputs (row: inputs) are `packs` runs of equal length, one behind the other, each
/// made of units of length `unit`. A projection to queries, keys and values by heads has {3, elements of a head}.
struct Grain {
  std::int64_t packs = 1;
  std::int64_t unit = 1;
};

/// The placements of the weight and bias of a layer divided by column, column_gathered or row.
struct DividedWeights {
  Placements placements;            // of "weight" and "bias"
  std::vector<std::int64_t> sizes;  // of all ranks' parts of the output; column_gathered
};

/// weight, with the outputs along dimension `out` (0 or 1) and the inputs along the other one of these two, and bias
/// (may be undefined) become this rank's parts. Throws ConfigError where ranks cannot have a part each.
DividedWeights divide_weights(TensorStyle style, const CommunicatorPtr& group, const at::Tensor& weight,
                              const at::Tensor& bias, std::int64_t out, Grain grain = {});

/// A layer that can be divided.
class TensorParallel {
 public:
  virtual ~TensorParallel() = default;

  /// Keeps this rank's part of each parameter, and says which it is, by names relative to the layer. Of a layer that is
  /// whole; once. Throws ConfigError for a style that is not for this layer, or more ranks than can have a part of it.
  virtual Placements divide(TensorStyle style, const CommunicatorPtr& group) = 0;

  /// The linear part of the layer, to which an adapter can be added; null: it has none.
  virtual DividedLinear* linear() { return nullptr; }
};

/// The linear part of a layer, whole or divided: what layers that implement TensorParallel are made of.
class DividedLinear {
 public:
  using Grain = phalanx::Grain;

  explicit DividedLinear(WeightLayout layout) : layout_(layout) {}
  DividedLinear(WeightLayout layout, Grain grain) : layout_(layout), grain_(grain) {}

  /// weight and bias (may be undefined) become this rank's parts. "weight" and "bias" name them.
  Placements divide(TensorStyle style, const CommunicatorPtr& group, const at::Tensor& weight, const at::Tensor& bias);

  /// From now on, of a layer divided by column or row, what is whole otherwise is of this rank's positions.
  void share_positions() { positions_ = true; }

  /// From now on, of a layer that shares positions, their exchange overlaps with the product
  /// (framework/parallel/overlapped_linear.h).
  void overlap_exchange() { overlaps_ = true; }

  bool divided() const { return group_ != nullptr; }

  WeightLayout layout() const { return layout_; }

  /// From now on `adapter`, of the input, is added to the output. Of a layer that is whole, and stays so.
  void adapt(std::function<at::Tensor(const at::Tensor& input)> adapter) { adapter_ = std::move(adapter); }

  /// apply_linear(), with what its style asks for before and after it.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) const;

 private:
  WeightLayout layout_;
  Grain grain_;
  TensorStyle style_ = TensorStyle::kColumn;
  CommunicatorPtr group_;            // null: the layer is whole
  std::vector<std::int64_t> sizes_;  // of all ranks' parts of the output
  bool positions_ = false;           // are shared
  bool overlaps_ = false;            // their exchange
  std::function<at::Tensor(const at::Tensor& input)> adapter_;
};

/// A table of embeddings, whole or divided by its rows.
class DividedEmbedding {
 public:
  /// weight [count, width] becomes this rank's rows.
  Placements divide(TensorStyle style, const CommunicatorPtr& group, const at::Tensor& weight);

  /// From now on look_up() gives this rank's positions, of all indices, and logits() takes them. Of a divided table.
  void share_positions() { positions_ = true; }

  /// indices int64 [...] -> [..., width]
  at::Tensor look_up(const at::Tensor& indices, const at::Tensor& weight) const;

  /// The products with all rows: x [..., width] -> [..., count]
  at::Tensor logits(const at::Tensor& x, const at::Tensor& weight) const;

  /// From now on logits() gives those of this rank's rows alone; null: it has all rows.
  ClassPartsPtr leave_logits_divided();

 private:
  CommunicatorPtr group_;  // null: the table is whole
  Placement::Run rows_;
  std::vector<std::int64_t> sizes_;
  bool gathers_ = true;     // logits
  bool positions_ = false;  // are shared
};

}  // namespace phalanx
