// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/optim/group_table.h"
#include "engine/optim/optimizer.h"

namespace phalanx {

/// An optimizer that treats every element independently. A subclass defines its state and how a run of elements is
/// updated. On the CPU, runs are short enough to stay in a core's cache, where their gradients are then zeroed, so that
/// memory is traversed once; threads divide the runs among them. On a device, a run is as long as possible, since each
/// one costs kernel launches. The new value of an element depends, to the last bit, only on the element itself: not on
/// the borders of slices, nor on its neighbours, nor on the number of threads.
class ElementwiseOptimizer : public Optimizer {
 public:
  ElementwiseOptimizer(double learning_rate, double weight_decay, const ParameterGroups& groups)
      : learning_rate_(learning_rate), weight_decay_(weight_decay), groups_(groups) {}

  void attach(std::vector<Slice> slices) final;
  void update() final;
  void leave_out(const std::set<std::string>& parameters) final;
  double learning_rate() const final { return learning_rate_; }
  void set_learning_rate(double rate) final { learning_rate_ = rate; }
  std::vector<StateTensor> state() final;
  std::int64_t updates() const final { return updates_; }
  void set_updates(std::int64_t updates) final { updates_ = updates; }

 protected:
  /// A kind of state, stored as a tensor like the values.
  struct Kind {
    std::string name;
    double initial = 0;
  };

  /// The tensors for the same n elements; on the CPU, n is a multiple of 64. All tensors are [n].
  struct Run {
    at::Tensor values, gradients;
    std::vector<at::Tensor> state;  // by kind
  };

  /// The settings that all elements of a group share.
  struct Rates {
    double learning_rate, weight_decay;
    std::int64_t update;              // number of the update, from 1
    const at::Tensor& update_tensor;  // the same as a tensor, [], for LibTorch's fused kernels, on the values' device
  };

  virtual std::vector<Kind> kinds() const = 0;

  /// Updates a run. Called without autograd, by several threads at a time with different runs. May overwrite the
  /// gradients, which are zeroed afterwards.
  virtual void update_run(const Run& run, const Rates& rates) const = 0;

 private:
  // A run, or the end of one that is too short for a whole run, which is updated in a copy.
  struct Piece {
    std::size_t group;
    Run run;
    std::optional<Run> original{};
  };

  void divide();
  void divide(std::size_t slice);
  void add_pieces(std::size_t slice, std::size_t group, std::int64_t begin, std::int64_t end);
  Run run_of(std::size_t slice, std::int64_t begin, std::int64_t end) const;
  void update_piece(const Piece& piece, const at::Tensor& update_tensor) const;

  double learning_rate_, weight_decay_;
  GroupTable groups_;
  std::vector<Slice> slices_;
  std::vector<std::vector<at::Tensor>> state_;  // by kind, then slice
  std::set<std::string> left_out_;
  std::vector<Piece> pieces_;               // of the parameters that are updated
  std::vector<at::Tensor> left_gradients_;  // of the others
  std::int64_t updates_ = 0;
};

}  // namespace phalanx
