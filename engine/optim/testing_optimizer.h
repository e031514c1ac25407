// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/optim/optimizer.h"

namespace phalanx::testing {

/// The optimizer that a config file would make of this YAML.
std::unique_ptr<Optimizer> make_optimizer(const std::string& yaml, const ParameterGroups& groups = {});

/// Six parameters as a small network has them (weights of a convolution and of layers, biases; hidden weights and an
/// output layer, "head"), in one run of elements. Their values are always the same, their gradients zero.
Bucket small_network(at::ScalarType dtype = at::kFloat);

/// The elements of a parameter in a run of elements, in the parameter's shape.
at::Tensor parameter_of(const at::Tensor& run, const Segment& segment);

/// Gradients [elements] of an update, by its number alone.
at::Tensor gradients_of(std::int64_t update, std::int64_t elements, at::ScalarType dtype = at::kFloat);

/// Updates slices that make up small_network(), in order, with the gradients of updates [from, to).
void train(Optimizer& optimizer, const std::vector<Slice>& slices, std::int64_t from, std::int64_t to);

/// One parameter of a reference.
struct Twin {
  std::string name;
  at::Tensor values, gradients;
  double lr_factor, weight_decay_factor;
};

/// An optimizer of small_network() beside a reference that is to have the same values. Biases learn at half the rate,
/// without weight decay.
class Twins {
 public:
  Twins(const std::string& yaml, at::ScalarType dtype);

  std::vector<Twin>& reference() { return reference_; }

  /// The reference's parameters of one group, as leaves with gradients.
  std::vector<at::Tensor> leaves(bool biases);

  /// An update of both; `update_reference` does that of the reference.
  template <class Update>
  void update(const Update& update_reference) {
    next_gradients();
    optimizer_->update();
    update_reference();
  }

  /// Both have the same values, to `tolerance` relative to 1 or to the larger value; and not those of the beginning.
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
