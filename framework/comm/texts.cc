// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/texts.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace phalanx {
namespace {

at::Tensor length_of(std::string_view text) {
  at::Tensor length = at::empty({1}, at::kLong);
  *length.data_ptr<std::int64_t>() = static_cast<std::int64_t>(text.size());
  return length;
}

std::vector<std::int64_t> gather_lengths(const std::string& mine, Communicator& group) {
  at::Tensor lengths = at::empty({group.size()}, at::kLong);
  group.all_gather(lengths, length_of(mine)).wait();
  return {lengths.data_ptr<std::int64_t>(), lengths.data_ptr<std::int64_t>() + lengths.numel()};
}

// The replay of a recording may have another text than the recorded rank, such as its process id. The recorded length
// counts then, and the recorded text replaces this one (see MeasuredInputs).
at::Tensor to_letters(std::string_view text, std::int64_t length) {
  at::Tensor letters = at::empty({length}, at::kByte);
  const auto kept = text.substr(0, static_cast<std::size_t>(length));
  auto* const end = std::ranges::copy(kept, letters.data_ptr<std::uint8_t>()).out;
  std::fill(end, letters.data_ptr<std::uint8_t>() + length, std::uint8_t{0});
  return letters;
}

at::Tensor room_for(const std::vector<std::int64_t>& lengths) {
  return at::empty({std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})}, at::kByte);
}

std::vector<std::string> split(const at::Tensor& letters, const std::vector<std::int64_t>& lengths) {
  std::vector<std::string> texts;
  const auto* next = reinterpret_cast<const char*>(letters.data_ptr<std::uint8_t>());
  for (const auto length : lengths) {
    texts.emplace_back(next, static_cast<std::size_t>(length));
    next += length;
  }
  return texts;
}

}  // namespace

std::string broadcast_text(std::string_view text, Communicator& group, int source) {
  const at::Tensor length = length_of(text);
  group.broadcast(length, source).wait();
  const std::vector<std::int64_t> lengths{*length.const_data_ptr<std::int64_t>()};
  const at::Tensor letters = to_letters(text, lengths.front());  // on all ranks: a replay that is detached gets its own
  if (letters.numel() > 0) group.broadcast(letters, source).wait();
  return split(letters, lengths).front();
}

std::vector<std::string> all_gather_text(const std::string& mine, Communicator& group) {
  const auto lengths = gather_lengths(mine, group);
  at::Tensor all = room_for(lengths);
  group.all_gather(all, to_letters(mine, lengths[static_cast<std::size_t>(group.rank())]), lengths).wait();
  return split(all, lengths);
}

std::vector<std::string> gather_text(const std::string& mine, Communicator& group) {
  const auto lengths = gather_lengths(mine, group);
  at::Tensor all = group.rank() == 0 ? room_for(lengths) : at::Tensor();
  group.gather(all, to_letters(mine, lengths[static_cast<std::size_t>(group.rank())]), 0, lengths).wait();
  return group.rank() == 0 ? split(all, lengths) : std::vector<std::string>{};
}

}  // namespace phalanx
