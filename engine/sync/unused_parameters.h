#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/sync/parameter_hooks.h"
#include "engine/sync/replica_groups.h"

namespace phalanx {

/// Finds the parameters that had no part in a step: no rank that has them computed a gradient for them, in any part of
/// its batch. Padding alone does not use a parameter. A recorded step, in which backward runs without the host, uses
/// what it used when it was recorded.
class UnusedParameters {
 public:
  using Predicate = std::function<bool(const std::string& parameter)>;

  /// Parameters for which `always_used` holds are never unused. Parameters must be where they stay.
  explicit UnusedParameters(const std::vector<ReplicaGroup>& groups, const Predicate& always_used);

  /// After the gradients of a step are complete: agrees with the other ranks, and begins to look at the next step.
  /// Collective: 8 bytes for each group, and where any rank has an unused parameter 8 bytes for each parameter.
  void agree();

  /// As of the last agree().
  const std::set<std::string>& names() const { return names_; }

 private:
  struct Member {
    CommunicatorPtr group;
    std::vector<std::string> names;            // in the order of the buckets
    std::vector<std::vector<std::size_t>> at;  // numbers among these, by bucket
    std::vector<std::size_t> always;           // numbers of those that are never unused
    std::vector<std::int64_t> used;            // [n], in this step so far: 1 where there was a gradient
    std::vector<std::int64_t> last;            // the same of the last step
    at::Tensor ballot;                         // [1] int64
    std::atomic<bool> any{false};              // backward has run in this step
    std::unique_ptr<ParameterHooks> hooks{};
  };

  void agree(Member& member);

  std::vector<std::unique_ptr<Member>> members_;  // in one place, as hooks know them
  std::set<std::string> names_;
};

}  // namespace phalanx
