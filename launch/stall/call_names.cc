// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/call_names.h"

namespace phalanx {

void CallNames::add(std::int64_t elements, const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::string& names = by_elements_[elements];
  names += (names.empty() ? "" : " or ") + name;
}

std::string CallNames::of(const Call& call) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_elements_.find(call.elements);
  return found == by_elements_.end() ? "" : found->second;
}

}  // namespace phalanx
