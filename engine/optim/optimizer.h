// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/base/registry.h"
#include "framework/parallel/slice.h"

namespace phalanx {

/// Settings for the parameters whose names match; of several groups that match, the first counts.
struct ParameterGroup {
  std::string match;
  double lr_factor = 1;
  double weight_decay_factor = 1;

  template <class V>
  void visit(V& v) {
    v("match", match, "regular expression (ECMAScript) that matches anywhere in a parameter's name");
    v("lr_factor", lr_factor, "factor for the learning rate", config::at_least(0));
    v("weight_decay_factor", weight_decay_factor, "factor for the weight decay", config::at_least(0));
  }
};
using ParameterGroups = std::vector<ParameterGroup>;

/// What an optimizer remembers of a slice from update to update.
struct StateTensor {
  std::string kind;         // "momentum", "exp_avg", ...
  std::size_t slice = 0;    // in the order of attach()
  at::Tensor values;        // [n], one for each element of the slice; or any of parameter `parameter`
  std::string parameter{};  // empty: of all elements of the slice
};

/// The kind of state that is a moving average of the values: it goes where they go.
inline constexpr const char* kMovingAverage = "ema";

/// Updates slices of parameters in place.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Where slices may begin and end.
  virtual Cut cut() const { return Cut::kAnywhere; }

  /// What to update from now on; allocates state for these slices only, as before the first update.
  virtual void attach(std::vector<Slice> slices) = 0;

  /// One update with the learning rate set last, which also zeroes the gradients.
  virtual void update() = 0;

  /// Until the next call, updates leave these parameters as they are, values and state, as PyTorch's optimizers do with
  /// a grad of None, and zero their gradients. They write nothing there, so others may update the same memory
  /// meanwhile. A gradient of zeros is a gradient: weight decay and momentum move such a parameter. The optimizer may
  /// have none of the parameters named.
  virtual void leave_out(const std::set<std::string>& parameters) = 0;

  virtual double learning_rate() const = 0;
  virtual void set_learning_rate(double rate) = 0;

  /// All that the next updates depend on besides values and gradients: the tensors themselves, to be read or written.
  virtual std::vector<StateTensor> state() { return {}; }
  virtual std::int64_t updates() const = 0;  // since attach() or as set
  virtual void set_updates(std::int64_t updates) = 0;
};

/// A factory throws ConfigError for settings that do not go together and for an expression that is none.
using Optimizers = Registry<std::unique_ptr<Optimizer>(const ParameterGroups&)>;

}  // namespace phalanx
