// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "framework/comm/operations/call.h"

namespace phalanx {

/// Says what an operation moves, by its number of elements: the buckets of a model have lengths of their own. Buckets
/// of equal length are named together. Thread-safe.
class CallNames {
 public:
  /// Adds a bucket of `elements` elements, such as "bucket 1: fc2.bias to conv1.weight".
  void add(std::int64_t elements, const std::string& name);

  /// Returns the name of the bucket that the call moves; empty if it moves no bucket.
  std::string of(const Call& call) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::string> by_elements_;
};

}  // namespace phalanx
