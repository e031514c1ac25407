// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <source_location>

namespace phalanx {

/// The line of a program that issues an operation, for messages. A function that takes one has it as its last argument,
/// with the default Place::current(), which is the line of the call.
using Place = std::source_location;

/// The place of the operation that the calling thread is launching; nothing (line 0) outside of PlaceScope.
inline thread_local Place current_place;

/// Sets current_place for its own lifetime. Costs a few instructions.
class PlaceScope {
 public:
  explicit PlaceScope(const Place& place) : before_(current_place) { current_place = place; }
  ~PlaceScope() { current_place = before_; }
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  Place before_;
};

}  // namespace phalanx
