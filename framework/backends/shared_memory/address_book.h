// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/SmallVector.h>

#include <cstddef>

#include "framework/backends/shared_memory/group.h"

namespace phalanx::shared_memory {

/// An address for each rank; empty: not all can be reached.
using Addresses = c10::SmallVector<std::byte*, 16>;

/// Tells where each rank's memory of the current operation lies, in this rank's address space; empty if one of them
/// cannot be reached from here. All ranks get the same answer, reachable or not.
class AddressBook {
 public:
  virtual ~AddressBook() = default;
  virtual Location locate(const void* begin, std::size_t bytes) const = 0;
  virtual Addresses addresses(const Group& group, Location Post::* which) const = 0;  // after Group::meet()
};

}  // namespace phalanx::shared_memory
