// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/testing/arena.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/reference.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {

/// A theme of the conformance suite: tests that every backend must pass in worlds of every size.
class Suite : public ::testing::TestWithParam<int> {
 protected:
  void run(const RankBody& body, Seconds timeout = Seconds(60)) { run_ranks(kBackend, GetParam(), body, timeout); }

  /// Calls body(arena, where) with an arena in each kind of memory.
  template <class Body>
  static void in_all_memory(Communicator& group, std::size_t bytes, const Body& body) {
    for (const Memory memory : {Memory::kPrivate, Memory::kAllocated, Memory::kMixed}) {
      Arena arena(group, memory, bytes);
      body(arena, std::string(" in ") + to_string(memory));
    }
  }
};

/// Returns 1 to 5 and 8. Under mpirun, returns those sizes for which enough processes were started.
std::vector<int> world_sizes();
std::string ranks_of(const ::testing::TestParamInfo<int>& info);

/// Sizes. kFew, for tests of every dtype: none, one, and an odd number. kMany: around a cache line, beyond a single
/// message, and beyond several pieces of one.
inline constexpr std::array<std::int64_t, 3> kFew{0, 1, 1025};
inline constexpr std::array<std::int64_t, 6> kMany{7, 16, 17, 1023, 65'537, 150'001};

/// Returns counts that differ by rank; some are zero, and none exceeds `scale` elements.
std::vector<std::int64_t> uneven_counts(int ranks, std::int64_t scale);

/// Return a text for failed expectations.
std::string about(const Reduction& op, std::int64_t elements, at::ScalarType dtype);
std::string about(std::int64_t elements, at::ScalarType dtype);

}  // namespace phalanx::testing
