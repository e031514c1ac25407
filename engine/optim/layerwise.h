// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/group_table.h"
#include "engine/optim/optimizer.h"

namespace phalanx {

/// An optimizer that looks at whole parameters: at their norms, or at their rows and columns. Slices therefore hold
/// whole parameters. A subclass says what it remembers and how one parameter is updated.
class LayerwiseOptimizer : public Optimizer {
 public:
  /// `name`: as registered, for errors.
  LayerwiseOptimizer(std::string name, double learning_rate, double weight_decay, const ParameterGroups& groups)
      : name_(std::move(name)), learning_rate_(learning_rate), weight_decay_(weight_decay), groups_(groups) {}

  Cut cut() const final { return Cut::kBetweenParameters; }

  /// Throws ConfigError naming the parameter that is cut, std::invalid_argument for elements of no parameter.
  void attach(std::vector<Slice> slices) final;
  void update() final;
  void leave_out(const std::set<std::string>& parameters) final { left_out_ = parameters; }
  double learning_rate() const final { return learning_rate_; }
  void set_learning_rate(double rate) final { learning_rate_ = rate; }
  std::vector<StateTensor> state() final;
  std::int64_t updates() const final { return updates_; }
  void set_updates(std::int64_t updates) final { updates_ = updates; }

 protected:
  /// A parameter as it lies in its slice.
  struct Parameter {
    std::string name;
    at::Tensor values, gradients;         // of the parameter's shape
    std::vector<at::Tensor> state;        // of the same shape, by kind
    std::vector<at::Tensor> own_state{};  // by kind of its own

    /// Biases, and the scales and shifts of normalizations.
    bool vector() const { return values.dim() <= 1; }
  };

  /// State of a parameter's own, of any shape.
  struct OwnKind {
    std::string name;
    std::vector<std::int64_t> shape;
  };

  struct Rates {
    double learning_rate, weight_decay;
    std::int64_t update;  // its number, from 1
  };

  /// Kinds of state that every parameter has, each a tensor like its values, zero at first.
  virtual std::vector<std::string> kinds() const { return {}; }

  /// Further ones that `parameter` has, zero at first. No name is among kinds().
  virtual std::vector<OwnKind> own_kinds(const Parameter& /*parameter*/) const { return {}; }

  /// Called without autograd. May overwrite the gradients, which are zeroed afterwards.
  virtual void update_parameter(const Parameter& parameter, const Rates& rates) const = 0;

  /// An update of one parameter.
  struct Due {
    const Parameter& parameter;
    Rates rates;
    bool left_out;  // it stays as it is
  };

  /// All of one update(), for optimizers that do something for several parameters at once.
  virtual void update_parameters(const std::vector<Due>& all) const {
    for (const auto& due : all) {
      if (!due.left_out) update_parameter(due.parameter, due.rates);
    }
  }

  /// What attach() has attached.
  virtual void attached(const std::vector<const Parameter*>& /*all*/) {}

 private:
  void add_parameters(std::size_t slice);
  void add_parameter(std::size_t slice, const Segment& segment);

  // A parameter, with where it lies and whose settings it has.
  struct Attached {
    Parameter parameter;
    std::size_t slice, group;
  };

  std::string name_;
  double learning_rate_, weight_decay_;
  GroupTable groups_;
  std::vector<Slice> slices_;
  std::vector<std::vector<at::Tensor>> state_;  // by kind, then slice
  std::vector<Attached> attached_;
  std::set<std::string> left_out_;
  std::int64_t updates_ = 0;
};

}  // namespace phalanx
