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
#include "framework/partition/placement.h"

namespace phalanx {

/// Collects matrices that are sharded between ranks, for updates that need whole matrices, such as Muon's (as in Liu et
/// al. 2025, Muon is Scalable for LLM Training, arXiv:2502.16982). Every matrix has an owner among the ranks that hold
/// its parts. The others send their parts to it, it computes the update, and they get their parts of the result. If
/// several replicas have the same matrix, each replica does this separately. Matrices are assigned so that ranks have
/// about equal amounts of computation.
///
/// An update makes two all_to_alls, regardless of the number of matrices. With n bytes of sharded matrices per rank and
/// T ranks that hold parts of each, a rank sends (T - 1) / T n bytes, and then as many again if the matrices that it
/// owns are as large as its parts. It needs buffers of 2 n bytes, and buffers for the largest matrix.
class MatrixExchange {
 public:
  /// `group` must contain all ranks that may have parts of the same matrices, or the same parts. `placements` describes
  /// this rank's parts; matrices without a placement are whole. `options` are the dtype and device of all parts.
  MatrixExchange(CommunicatorPtr group, Placements placements, at::TensorOptions options);

  /// Returns the placement of this rank's part of a parameter, or null if the rank has all of it.
  const Placement* placement(const std::string& name) const;

  /// Assigns owners to the matrices. `names` lists the matrices of which this rank will update parts from now on.
  /// Collective. Throws std::logic_error if the ranks together do not have a complete matrix, and ConfigError in a
  /// fake world.
  void attach(const std::vector<std::string>& names);

  /// Calls `update` for each matrix that this rank owns, and replaces each of `parts`, in the order of attach(), with
  /// its part of the result. Collective.
  using Update = std::function<at::Tensor(const at::Tensor& whole)>;
  void update(const std::vector<at::Tensor>& parts, const Update& update) const;

  /// Returns the number of matrices that this rank owns.
  std::size_t owned() const { return owned_.size(); }

 private:
  struct Visit {  // a part, and the owner of its matrix
    std::string name;
    std::size_t matrix;  // differs between replicas
    int rank, owner;
    Placement placement{};
  };
  struct Owned {
    std::vector<std::int64_t> shape;
    std::vector<std::size_t> visits;  // indices in arriving_
  };

  std::vector<Visit> deal_out(const std::vector<std::string>& of_ranks) const;

  CommunicatorPtr group_;
  Placements placements_;
  at::TensorOptions options_;
  bool any_ = false;                  // true if any rank has parts
  std::vector<Visit> arriving_;       // by rank
  std::vector<std::size_t> leaving_;  // indices of parts, by owner
  std::vector<Owned> owned_;
  std::vector<std::int64_t> to_, from_;  // number of elements to and from each rank
};

/// An optimizer that needs whole matrices and collects the parts that ranks have of them.
class GathersMatrices {
 public:
  virtual ~GathersMatrices() = default;

  /// Must be called before attach(). From then on, attach() and update() are collective.
  virtual void gather_by(std::unique_ptr<MatrixExchange> exchange) = 0;
};

}  // namespace phalanx
