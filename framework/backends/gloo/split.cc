// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/split.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "framework/backends/gloo/collectives.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::gloo {
namespace {

constexpr std::uint64_t kColorsAndKeys = 1, kNotes = 2;  // the two collectives of a split

// Returns the bytes that go to each rank of the parent. The same number of bytes comes back, because all notes have the
// same length.
std::vector<std::int64_t> bytes_by_rank(const Group& parent, const std::vector<int>& members, std::size_t note) {
  std::vector<std::int64_t> bytes(parent.size());
  for (const int member : members) {
    if (member != parent.rank()) bytes[member] = static_cast<std::int64_t>(note);
  }
  return bytes;
}

}  // namespace

std::vector<int> members_of_color(Group& parent, int color, int key) {
  at::Tensor requests = at::empty({parent.size(), 2}, at::kInt);
  const at::Tensor own = at::empty({2}, at::kInt);
  own.data_ptr<int>()[0] = color;
  own.data_ptr<int>()[1] = key;
  parent.collective({.detail = kColorsAndKeys, .op = Op::kSplit}, {}, [&](const CollectiveCall& collective) {
    all_gather(collective, {.output = requests, .input = own});
  });
  const int* request = requests.data_ptr<int>();
  std::vector<int> members;
  for (int rank = 0; rank < parent.size() && color >= 0; ++rank) {
    if (request[2 * rank] == color) members.push_back(rank);
  }
  std::ranges::stable_sort(members, {}, [&](int rank) { return request[2 * rank + 1]; });
  return members;
}

Exchange exchange_through(Group& parent, const std::vector<int>& members) {
  return [&parent, members](const std::vector<std::string>& notes) {
    std::size_t note = 0;
    for (const auto& text : notes) note = std::max(note, text.size());
    const auto bytes = bytes_by_rank(parent, members, note);
    const auto total = static_cast<std::int64_t>(note * (members.empty() ? 0 : members.size() - 1));
    const at::Tensor sent = at::empty({total}, at::kByte), received = at::empty({total}, at::kByte);
    const PartLayout parts(bytes, parent.size(), total);
    std::vector<std::string> answers(notes.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == parent.rank()) continue;
      std::memcpy(sent.data_ptr<std::uint8_t>() + parts.begin(members[i]), notes[i].data(), notes[i].size());
    }
    parent.collective({.detail = kNotes, .op = Op::kSplit}, {}, [&](const CollectiveCall& collective) {
      all_to_all(collective, {.output = received, .input = sent, .output_counts = bytes, .input_counts = bytes});
    });
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == parent.rank()) continue;
      const auto* text = reinterpret_cast<const char*>(received.data_ptr<std::uint8_t>() + parts.begin(members[i]));
      answers[i].assign(text, note);
    }
    return answers;
  };
}

}  // namespace phalanx::gloo
