// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace phalanx::testing {

/// Says how much of the work of each stream is known to be over: the work of stream s with a time of at most at(s).
/// Streams are numbered from 0.
class VectorClock {
 public:
  std::uint64_t at(int stream) const {
    const auto index = static_cast<std::size_t>(stream);
    return index < times_.size() ? times_[index] : 0;
  }

  /// Advances the time of one stream and returns it.
  std::uint64_t tick(int stream) {
    const auto index = static_cast<std::size_t>(stream);
    if (index >= times_.size()) times_.resize(index + 1);
    return ++times_[index];
  }

  /// Makes known what `other` knows.
  void join(const VectorClock& other) {
    if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
    for (std::size_t i = 0; i < other.times_.size(); ++i) times_[i] = std::max(times_[i], other.times_[i]);
  }

 private:
  std::vector<std::uint64_t> times_;
};

}  // namespace phalanx::testing
