// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/optim/optimizer.h"

namespace phalanx::testing {

/// Returns the optimizer that a config file with this YAML would create.
std::unique_ptr<Optimizer> make_optimizer(const std::string& yaml, const ParameterGroups& groups = {});

/// Returns the six parameters of a small network, concatenated: weights and biases of a convolution, of a hidden layer
/// and of an output layer, "head". Their values are always the same, and their gradients are zero.
Bucket small_network(at::ScalarType dtype = at::kFloat);

/// Returns a parameter's elements in concatenated parameters, in the parameter's shape.
at::Tensor parameter_of(const at::Tensor& run, const Segment& segment);

/// Returns the gradients [elements] of an update, which depend only on its number.
at::Tensor gradients_of(std::int64_t update, std::int64_t elements, at::ScalarType dtype = at::kFloat);

/// Updates slices that together form small_network(), in order, with the gradients of updates [from, to).
void train(Optimizer& optimizer, const std::vector<Slice>& slices, std::int64_t from, std::int64_t to);

/// One parameter of a reference implementation.
struct Twin {
  std::string name;
  at::Tensor values, gradients;
  double lr_factor, weight_decay_factor;
};

/// An optimizer of small_network() together with a reference that must compute the same values. Biases have half the
/// learning rate and no weight decay.
class Twins {
 public:
  Twins(const std::string& yaml, at::ScalarType dtype);

  std::vector<Twin>& reference() { return reference_; }

  /// Returns the reference's parameters of one group, as leaves with gradients.
  std::vector<at::Tensor> leaves(bool biases);

  /// Does an update of both. `update_reference` must update the reference.
  template <class Update>
  void update(const Update& update_reference) {
    next_gradients();
    optimizer_->update();
    update_reference();
  }

  /// Expects both to have the same values, with `tolerance` relative to 1 or to the larger value, and to have changed.
  void expect_same(double tolerance) const;

 private:
  void next_gradients();

  Bucket bucket_;
  at::Tensor start_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Twin> reference_;
  std::int64_t update_ = 0;
};

}  // namespace phalanx::testing
