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

#include "engine/sync/parameter_hooks.h"
#include "engine/sync/replica_groups.h"

namespace phalanx {

/// Finds the parameters that had no part in a step: no rank whose gradients are combined in it computed a gradient for
/// them, in any part of its batch. Padding alone does not use a parameter. A recorded step, in which backward runs
/// without the host, uses what it used when it was recorded.
class UnusedParameters {
 public:
  using Predicate = std::function<bool(const std::string& parameter)>;

  /// Parameters for which `always_used` holds are never unused. Parameters must be where they stay.
  UnusedParameters(const std::vector<ReplicaGroup>& groups, const Predicate& always_used);

  /// Also looks at another replica of the model on this rank, whose parameters have the same names. A parameter is used
  /// if any replica uses it. Backward of this replica may run in another thread.
  void look_at(const FlatParameters& parameters);

  /// Finds the unused parameters of a step whose gradients are complete, and begins to look at the next step.
  /// `combined` is Synchronizer::gradient_groups(), one entry for each group of parameters. Collective in each of these
  /// groups: it sends 8 bytes, and 8 bytes for each parameter if any of the ranks has an unused one.
  void agree(const std::vector<CommunicatorPtr>& combined);

  /// As of the last agree().
  const std::set<std::string>& names() const { return names_; }

 private:
  struct Member {
    std::vector<std::string> names;   // in the order of the buckets
    std::vector<std::size_t> always;  // numbers of those that are never unused
    std::vector<std::int64_t> used;   // [n], in this step so far: 1 where there was a gradient
    std::vector<std::int64_t> last;   // the same of the last step
    at::Tensor ballot;                // [1] int64
    std::atomic<bool> any{false};     // backward has run in this step
  };

  void agree(Member& member, Communicator* combined);

  std::vector<std::unique_ptr<Member>> members_;  // in one place, as hooks know them
  std::map<std::string, std::pair<Member*, std::size_t>> numbers_;
  std::vector<std::unique_ptr<ParameterHooks>> hooks_;  // of each group and each further replica
  std::set<std::string> names_;
};

}  // namespace phalanx
