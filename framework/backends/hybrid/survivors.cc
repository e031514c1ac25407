// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/survivors.h"

#include <future>
#include <stdexcept>
#include <utility>

#include "framework/base/error.h"

namespace phalanx::hybrid {
namespace {

Survivors shrink_both(const Survivors& groups, const std::function<void()>& leave_others) {
  auto host = std::async(std::launch::async, [&] { return groups.host->shrink(); });
  leave_others();
  auto all = groups.all->shrink();
  return {.all = std::move(all), .host = host.get()};
}

}  // namespace

// Each further attempt follows the loss of a rank, so there are at most as many as ranks.
CommunicatorPtr shrink_together(Survivors groups, const std::function<void()>& leave_others,
                                const std::function<CommunicatorPtr(const Survivors&)>& combine) {
  for (int attempts = groups.all->size();; --attempts) {
    groups = shrink_both(groups, leave_others);
    try {
      return combine(groups);
    } catch (const CommError& error) {
      if (error.kind() != CommError::Kind::kPeerLost || attempts == 1) throw;
    } catch (const std::invalid_argument&) {
      if (attempts == 1) throw;
    }
  }
}

std::string why_not_together(const Communicator& all, const Communicator& host) {
  std::string why = all.why_no_shrink();
  return why.empty() ? host.why_no_shrink() : why;
}

}  // namespace phalanx::hybrid
