// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/observe/hang/picture.h"

namespace phalanx {

/// Returns one sentence that says why a job stands still, or what its ranks do if it does not:
///
///   ranks 0, 1, 3 have waited 20 s in all_reduce #712 of world (bucket 1: fc2.bias to conv1.weight) for rank 2, which
///   has not come: its process 4711 on vm is stopped (SIGSTOP), in forward of step 89
///
/// Names who is at which operation, who has not come, what that one is doing, and for how long. If all ranks wait, it
/// names the first operation in which they ask for different things, or the message that has not come. A wait counts if
/// it has lasted for `least_wait` seconds.
std::string explain(const JobPicture& picture, double least_wait = 1);

/// The ranks that the sentence is about.
struct Standing {
  std::vector<int> waiting;  // wait in an operation
  std::vector<int> awaited;  // have not come to the one that the sentence names; empty if all ranks wait, or none
};
Standing standing_ranks(const JobPicture& picture, double least_wait = 1);

/// Returns the operation in which a rank waits, or which has just failed because it has waited for too long. Returns
/// nullptr otherwise.
const PicturedOperation* current_operation(const RankPicture& rank);

/// An operation for which ranks ask differently.
struct Difference {
  /// The ranks that ask for the same thing.
  struct Request {
    std::vector<int> ranks;
    PicturedOperation operation;  // of the first of them
  };
  std::string group{};
  std::uint64_t sequence = 0;
  std::vector<Request> requests{};  // at least two
};

/// Returns the first operation, by its sequence number, in which ranks differ. Compares the collective operations of
/// groups in which no recent operation is a message, since messages are not the same on all ranks.
std::optional<Difference> first_difference(const JobPicture& picture);

/// The number of operations from which slow_rank() judges the speed of ranks.
inline constexpr std::size_t kLeastOperations = 3;

/// Returns the rank for which the others regularly wait. In the recorded operations that all ranks have completed, it
/// waited less than a quarter as long as the others did, and they waited for it during at least `least_share` of the
/// time. Returns nothing if there are fewer than kLeastOperations of these operations.
std::optional<int> slow_rank(const JobPicture& picture, double least_share = 0.2);

}  // namespace phalanx
