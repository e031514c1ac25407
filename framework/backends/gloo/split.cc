// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/split.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "framework/backends/gloo/collectives.h"

namespace phalanx::gloo {
namespace {

constexpr std::uint64_t kColorsAndKeys = 1, kTexts = 2;  // the two collectives of a split
constexpr std::size_t kTextBytes = 128;                  // an address has at most 79, "[IPv6%interface]:port"

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

// All ranks of the parent learn all texts, which are short.
Exchange exchange_through(Group& parent, const std::vector<int>& members) {
  return [&parent, members](const std::string& own) {
    if (own.size() > kTextBytes) throw std::invalid_argument("a text for a split is too long: " + own);
    const auto bytes = static_cast<std::int64_t>(kTextBytes);
    const at::Tensor all = at::empty({parent.size(), bytes}, at::kByte), sent = at::zeros({bytes}, at::kByte);
    std::memcpy(sent.data_ptr<std::uint8_t>(), own.data(), own.size());
    parent.collective({.detail = kTexts, .op = Op::kSplit}, {}, [&](const CollectiveCall& collective) {
      all_gather(collective, {.output = all, .input = sent});
    });
    std::vector<std::string> texts;
    for (const int member : members) {
      const std::string padded(reinterpret_cast<const char*>(all[member].data_ptr<std::uint8_t>()), kTextBytes);
      texts.push_back(padded.substr(0, padded.find('\0')));
    }
    return texts;
  };
}

void throw_if_lost(Group& parent, const std::vector<int>& members) {
  for (const int member : members) {
    if (member == parent.rank()) continue;
    if (auto why = parent.transport().link(member).closed()) throw Lost{member, *std::move(why), 0};
  }
}

}  // namespace phalanx::gloo
