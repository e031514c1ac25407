// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/base/registry.h"
#include "framework/partition/slice.h"

namespace phalanx {

/// Settings for the parameters whose names match. If several groups match, the first one applies.
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

/// A part of an optimizer's state for a slice.
struct StateTensor {
  std::string kind;         // "momentum", "exp_avg", ...
  std::size_t slice = 0;    // in the order of attach()
  at::Tensor values;        // [n], one for each element of the slice; or of any shape, for `parameter`
  std::string parameter{};  // empty if it is for all elements of the slice
};

/// The kind of state that is a moving average of the values. If the values are averaged or moved, it must be too.
inline constexpr const char* kMovingAverage = "ema";

/// Updates slices of parameters in place.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Returns the places at which slices may begin and end.
  virtual Cut cut() const { return Cut::kAnywhere; }

  /// Sets the slices to update from now on, and allocates state for them, as before the first update.
  virtual void attach(std::vector<Slice> slices) = 0;

  /// Updates the slices with the current learning rate, and zeroes the gradients.
  virtual void update() = 0;

  /// Returns true if update_unless() may be called instead of the next update(). The same on all ranks.
  virtual bool can_skip_on_device() const { return false; }

  /// Does what update() does if `skip`, [] float32 on the slices' device, is 0. If it is 1, zeroes the gradients, which
  /// need not be finite, and changes nothing else. The host does not wait to learn which: updates() does. Throws
  /// std::logic_error if the optimizer cannot do this.
  virtual void update_unless(const at::Tensor& /*skip*/) {
    throw std::logic_error("this optimizer cannot decide on the device whether to skip an update");
  }

  /// Returns why a graph of the device (DeviceGraph) cannot contain updates: "train.ema_decay computes on the host".
  /// Empty if it can: see record().
  virtual std::string why_not_recorded() const { return "the optimizer computes with numbers of the host"; }

  /// Enqueues the kernels of update() or, with `skip`, of update_unless() on the current stream, which is being
  /// recorded as a graph. Each replay is then an update with the number and the learning rate that prepare_replay() has
  /// written to the device. Changes nothing on the host. Must be preceded by an update: optimizers treat the first one
  /// differently. Throws std::logic_error if why_not_recorded() is not empty.
  virtual void record(const std::optional<at::Tensor>& /*skip*/) { throw std::logic_error(why_not_recorded()); }

  /// Writes what record() reads from the device. Must be called before record() and before each replay. Does not wait
  /// for the device.
  virtual void prepare_replay() { throw std::logic_error(why_not_recorded()); }

  /// Counts the update of a replay, after it was launched.
  virtual void replayed() { throw std::logic_error(why_not_recorded()); }

  /// Excludes these parameters from updates until the next call: their values and state do not change, as in PyTorch's
  /// optimizers for a grad of None, and their gradients are zeroed. The optimizer writes nothing else to them, so other
  /// ranks may update the same memory at the same time. A gradient of zeros does not exclude a parameter: weight decay
  /// and momentum still move it. Names of parameters that this optimizer does not have are ignored.
  virtual void exclude(const std::set<std::string>& parameters) = 0;

  virtual double learning_rate() const = 0;
  virtual void set_learning_rate(double rate) = 0;

  /// Returns all tensors that the next updates depend on, other than values and gradients. Callers may read and write
  /// them.
  virtual std::vector<StateTensor> state() { return {}; }
  virtual std::int64_t updates() const = 0;  // since attach() or set_updates()
  virtual void set_updates(std::int64_t updates) = 0;
};

/// A factory throws ConfigError for settings that contradict each other and for invalid regular expressions.
using Optimizers = Registry<std::unique_ptr<Optimizer>(const ParameterGroups&)>;

}  // namespace phalanx
