// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace phalanx::recording {

/// Names for parts of memory, such as the parameters in a bucket, so that the checksum of an operation's input can be
/// divided by name. Thread-safe.
class NamedMemory {
 public:
  /// A part of the memory of a tensor.
  struct Piece {
    std::string name;  // empty: no name is known for it
    const char* begin;
    std::size_t bytes;
  };

  void add(std::string name, const void* begin, std::size_t bytes);

  /// Returns the pieces of a run of bytes, in order, or an empty list if no byte has a name.
  std::vector<Piece> pieces(const void* begin, std::size_t bytes) const;

 private:
  struct Named {
    std::string name;
    std::size_t bytes;
  };

  mutable std::mutex mutex_;
  std::map<const char*, Named> by_begin_;
};

}  // namespace phalanx::recording
