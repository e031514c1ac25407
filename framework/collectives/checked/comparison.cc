// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/checked/comparison.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <type_traits>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// The message that each rank sends.
struct Entry {
  Call call{};
  char note[48] = {};
};
static_assert(std::is_trivially_copyable_v<Entry>);

std::vector<Entry> gather(Communicator& group, const Entry& mine) {
  const auto size = static_cast<std::int64_t>(sizeof(Entry));
  const at::Tensor input = at::empty({size}, at::kByte);
  const at::Tensor output = at::empty({size * group.size()}, at::kByte);
  std::memcpy(input.data_ptr(), &mine, sizeof mine);
  group.all_gather(output, input).wait();
  std::vector<Entry> all(static_cast<std::size_t>(group.size()));
  std::memcpy(all.data(), output.data_ptr(), all.size() * sizeof(Entry));
  return all;
}

std::string text_of(const Entry& entry) {
  return describe(entry.call) + (entry.note[0] == '\0' ? "" : std::string(" (") + entry.note + ")");
}

[[noreturn]] void throw_mismatch(const Communicator& group, std::uint64_t number, const std::string& what) {
  throw CommError(CommError::Kind::kMismatch, "operation #" + std::to_string(number) + " of " + group.name() +
                                                  ", rank " + std::to_string(group.rank()) + " of " +
                                                  std::to_string(group.size()) + ": ranks disagree: " + what);
}

}  // namespace

void compare_calls(Communicator& group, const Call& call, std::uint64_t number, const std::string& note) {
  Entry mine{.call = call};
  note.copy(mine.note, sizeof mine.note - 1);
  const auto all = gather(group, mine);
  // All calls are compared with rank 0's, so that all ranks report the same first disagreement.
  for (std::size_t peer = 1; peer < all.size(); ++peer) {
    if (all[peer].call == all[0].call) continue;
    throw_mismatch(
        group, number,
        "rank 0 calls " + text_of(all[0]) + ", rank " + std::to_string(peer) + " calls " + text_of(all[peer]));
  }
}

void compare_counts(Communicator& group, Counts output_counts, Counts input_counts, std::uint64_t number) {
  const std::int64_t size = group.size();
  const at::Tensor input = at::empty({2, size}, at::kLong);
  const at::Tensor output = at::empty({size, 2, size}, at::kLong);
  std::memcpy(input[0].data_ptr(), output_counts.data(), static_cast<std::size_t>(size) * sizeof(std::int64_t));
  std::memcpy(input[1].data_ptr(), input_counts.data(), static_cast<std::size_t>(size) * sizeof(std::int64_t));
  group.all_gather(output, input).wait();
  const auto counts = output.accessor<std::int64_t, 3>();
  for (std::int64_t sender = 0; sender < size; ++sender) {
    for (std::int64_t receiver = 0; receiver < size; ++receiver) {
      const auto sent = counts[sender][1][receiver];
      const auto expected = counts[receiver][0][sender];
      if (sent == expected) continue;
      throw_mismatch(group, number,
                     "in all_to_all rank " + std::to_string(sender) + " sends " + std::to_string(sent) +
                         " elements to rank " + std::to_string(receiver) + ", which expects " +
                         std::to_string(expected));
    }
  }
}

}  // namespace phalanx
