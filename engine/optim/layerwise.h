// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/slice_optimizer.h"

namespace phalanx {

/// An optimizer that needs whole parameters: their norms, or their rows and columns. Slices therefore hold whole
/// parameters. A subclass defines its state and how one parameter is updated.
class LayerwiseOptimizer : public SliceOptimizer {
 public:
  /// `name` is the registered name, for errors.
  LayerwiseOptimizer(std::string name, double learning_rate, double weight_decay, const ParameterGroups& groups)
      : SliceOptimizer(learning_rate, weight_decay, groups), name_(std::move(name)) {}

  Cut cut() const final { return Cut::kBetweenParameters; }

  /// Throws ConfigError naming the parameter that is split, or std::invalid_argument if elements belong to no
  /// parameter.
  void attach(std::vector<Slice> slices) final;
  void update() final;
  std::vector<StateTensor> state() final;

 protected:
  /// Views of a parameter and its state in a slice.
  struct Parameter {
    std::string name;
    at::Tensor values, gradients;         // of the parameter's shape
    std::vector<at::Tensor> state;        // of the same shape, by kind
    std::vector<at::Tensor> own_state{};  // by index in own_kinds()

    /// Returns true for biases, and for the scales and shifts of normalizations.
    bool vector() const { return values.dim() <= 1; }
  };

  /// A kind of state with its own shape, for a single parameter.
  struct OwnKind {
    std::string name;
    std::vector<std::int64_t> shape;
  };

  using Rates = GroupRates;

  std::vector<Kind> kinds() const override { return {}; }

  /// Returns additional kinds for `parameter`, which start as zeros. Their names must not be among kinds().
  virtual std::vector<OwnKind> own_kinds(const Parameter& /*parameter*/) const { return {}; }

  /// Updates one parameter. Called without autograd. May overwrite the gradients, which are zeroed afterwards.
  virtual void update_parameter(const Parameter& parameter, const Rates& rates) const = 0;

  /// The pending update of one parameter.
  struct Due {
    const Parameter& parameter;
    Rates rates;
    bool excluded;  // if true, the parameter must not change
  };

  /// Does all updates of one update(). Optimizers that process several parameters together override it.
  virtual void update_parameters(const std::vector<Due>& all) const {
    for (const auto& due : all) {
      if (!due.excluded) update_parameter(due.parameter, due.rates);
    }
  }

  /// Called at the end of attach() with all parameters.
  virtual void attached(const std::vector<const Parameter*>& /*all*/) {}

 private:
  void add_parameters(std::size_t slice);
  void add_parameter(std::size_t slice, const Segment& segment);

  // A parameter, with the indices of its slice and of its group.
  struct Attached {
    Parameter parameter;
    std::size_t slice, group;
  };

  std::string name_;
  std::vector<Attached> attached_;
};

}  // namespace phalanx
