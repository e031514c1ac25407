// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/parallel/placement.h"

namespace phalanx {

/// Matrices that ranks have divided, for updates that need the whole of each, such as Muon's (Liu et al. 2025, Muon is
/// Scalable for LLM Training, arXiv:2502.16982, gather each for that). Every matrix has an owner among the ranks that
/// have its parts: these send it their parts, it computes the update, and they get their parts of that back. Where
/// several replicas have the same matrix, each does so for itself. Matrices are dealt out so that ranks compute as much
/// as each other, about.
///
/// Two all_to_alls per update, whatever the number of matrices. With n bytes of divided matrices per rank and T ranks
/// that have parts of each, a rank sends (T - 1) / T n and then, if it owns as much as it has, the same once more. It
/// needs buffers of 2 n, and those of the largest matrix.
class MatrixExchange {
 public:
  /// `group`: all ranks that may have parts of the same matrices, or the same parts. `placements`: of this rank's
  /// parts; what has none is whole. `options`: dtype and device of all parts.
  MatrixExchange(CommunicatorPtr group, Placements placements, at::TensorOptions options);

  /// Where this rank's part of a parameter is; null: it has all of it.
  const Placement* placement(const std::string& name) const;

  /// Deals out the matrices. `names`: of which this rank has parts to update from now on. Collective. Throws
  /// std::logic_error where the ranks do not have all of a matrix, ConfigError in a world without peers.
  void attach(const std::vector<std::string>& names);

  /// Replaces each of `parts`, in the order of attach(), by that part of what `update` gives for the whole; it is
  /// called for the matrices that this rank owns. Collective.
  using Update = std::function<at::Tensor(const at::Tensor& whole)>;
  void update(const std::vector<at::Tensor>& parts, const Update& update) const;

  /// Matrices that this rank owns.
  std::size_t owned() const { return owned_.size(); }

 private:
  struct Visit {  // of a part with the owner of its matrix
    std::string name;
    std::size_t matrix;  // those of two replicas are two
    int rank, owner;
    Placement placement{};
  };
  struct Owned {
    std::vector<std::int64_t> shape;
    std::vector<std::size_t> visits;  // in arriving_
  };

  std::vector<Visit> deal_out(const std::vector<std::string>& of_ranks) const;

  CommunicatorPtr group_;
  Placements placements_;
  at::TensorOptions options_;
  bool any_ = false;                  // on any rank
  std::vector<Visit> arriving_;       // by rank
  std::vector<std::size_t> leaving_;  // parts, by owner
  std::vector<Owned> owned_;
  std::vector<std::int64_t> to_, from_;  // elements for and from each rank
};

/// An optimizer that looks at whole matrices and has the parts that ranks have of one brought together.
class GathersMatrices {
 public:
  virtual ~GathersMatrices() = default;

  /// Before attach(), which is collective from then on, as is update().
  virtual void gather_by(std::unique_ptr<MatrixExchange> exchange) = 0;
};

}  // namespace phalanx
