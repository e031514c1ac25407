// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/strategies/data_parallel_groups.h"
#include "engine/strategies/parameter_hooks.h"

namespace phalanx {

/// Finds the parameters that were not used in a step: none of the ranks whose gradients are combined in it computed a
/// gradient for them in any part of its batch. A use by padding rows alone does not count. In a recorded step, where
/// backward runs without the host, parameters count as used if they were used when the step was recorded.
class UnusedParameters {
 public:
  using Predicate = std::function<bool(const std::string& parameter)>;

  /// Parameters for which `always_used` returns true are never unused. Parameters must not move afterwards.
  UnusedParameters(const std::vector<DataParallelGroup>& groups, const Predicate& always_used);

  /// Also looks at another replica of the model on this rank, whose parameters have the same names. A parameter is used
  /// if any replica uses it. Backward of this replica may run in another thread.
  void look_at(const FlatParameters& parameters);

  /// Finds the unused parameters of a step whose gradients are complete, and begins to look at the next step.
  /// `combined` is Strategy::gradient_groups(), one entry for each group of parameters. Collective in each of these
  /// groups: it sends 8 bytes, and 8 bytes for each parameter if any of the ranks has an unused one.
  void agree(const std::vector<CommunicatorPtr>& combined);

  /// Declares that the backward of the current step has been recorded: until the next call, a step without backward
  /// has used the parameters that this one has used so far.
  void keep_recorded();

  /// Declares that this rank computes nothing in the current step, so that it uses no parameter. Without this, a step
  /// without backward is taken for a recorded one.
  void skip_step();

  /// Returns true if this rank used all parameters in the last step for which the ranks have agreed.
  bool all_used_here() const;

  /// Returns the unused parameters found by the last agree().
  const std::set<std::string>& names() const { return names_; }

 private:
  struct Member {
    std::vector<std::string> names;      // in the order of the buckets
    std::vector<std::size_t> always;     // indices of the parameters that are never unused
    std::vector<std::int64_t> used;      // [n], 1 if there was a gradient in this step so far
    std::vector<std::int64_t> last;      // the same for the last step
    std::vector<std::int64_t> recorded;  // the same for the recorded step; empty: none
    at::Tensor ballot;                   // [1] int64
    std::atomic<bool> any{false};        // backward has run in this step
  };

  static void add_always_used(Member& member);
  void agree(Member& member, Communicator* combined);

  std::vector<std::unique_ptr<Member>> members_;  // at fixed addresses, which hooks keep
  std::map<std::string, std::pair<Member*, std::size_t>> numbers_;
  std::vector<std::unique_ptr<ParameterHooks>> hooks_;  // of each group and each additional replica
  std::set<std::string> names_;
};

}  // namespace phalanx
