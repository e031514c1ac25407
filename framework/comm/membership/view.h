// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx {

/// A process that takes part in a job. Its id is never used again, not even for a process that takes its place.
struct Member {
  std::int64_t id = 0;
  std::string host{};     // key of its host (host_key()); may be empty
  std::string control{};  // the address at which it waits for the other members when a view ends; may be empty

  bool operator==(const Member&) const = default;
};

/// The members of a group of ranks at one time. The position of a member is its rank. Whatever belongs to a group,
/// such as its connections and the files that it is writing, belongs to a view.
struct View {
  std::int64_t number = 0;
  std::vector<Member> members{};  // ascending by id

  bool operator==(const View&) const = default;
};

}  // namespace phalanx
