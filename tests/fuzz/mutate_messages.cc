// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/comm/store/store_protocol.h"
#include "framework/ps/protocol/message.h"
#include "tests/fuzz/mutators.h"

namespace phalanx::fuzz {
namespace {

constexpr std::array<std::uint64_t, 10> kValues{0,          1,          2,          0x7f,        0xffff,
                                                0x7fffffff, 0xffffffff, 1ULL << 42, ~0ULL >> 1U, ~0ULL};

struct Frame {
  std::string header, body{};
};

std::string bytes_of(const void* value, std::size_t bytes) { return {static_cast<const char*>(value), bytes}; }

// Overwrites a number of 1 to 8 bytes, at a multiple of its size.
void change_field(std::string& header, Random& random) {
  const std::size_t bytes = std::size_t{1} << random() % 4;
  const std::uint64_t value = kValues[random() % kValues.size()];
  std::memcpy(header.data() + random() % (header.size() / bytes) * bytes, &value, bytes);
}

std::string joined(const std::vector<Frame>& frames) {
  std::string all;
  for (const auto& frame : frames) all += frame.header + frame.body;
  return all;
}

// Divides the input into frames. `body_bytes` returns the bytes that follow a header.
template <class BodyBytes>
std::vector<Frame> frames_of(std::string_view input, std::size_t header_bytes, BodyBytes body_bytes) {
  std::vector<Frame> frames;
  while (input.size() >= header_bytes) {
    Frame frame{.header = std::string(input.substr(0, header_bytes))};
    input.remove_prefix(header_bytes);
    frame.body = input.substr(0, std::min<std::uint64_t>(input.size(), body_bytes(frame.header)));
    input.remove_prefix(frame.body.size());
    frames.push_back(std::move(frame));
  }
  return frames;
}

// Changes one frame. `write_lengths` writes the lengths of its new body into its header.
template <class WriteLengths>
std::string with_one_changed(std::vector<Frame> frames, const MutateBytes& mutate, Random& random,
                             WriteLengths write_lengths) {
  const std::size_t at = random() % frames.size();
  switch (random() % 5) {
    case 0:
      change_field(frames[at].header, random);
      break;
    case 1:
      frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(at), Frame(frames[random() % frames.size()]));
      break;
    case 2:
      if (frames.size() > 1) frames.erase(frames.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    default:
      frames[at].body = mutate(frames[at].body);
      write_lengths(frames[at]);
  }
  return joined(frames);
}

}  // namespace

std::string mutate_messages(const std::string& input, const MutateBytes& mutate, Random& random) {
  const auto header_of = [](const std::string& bytes) {
    ps::Header header;
    std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof(header));
    return header;
  };
  auto frames = frames_of(input, sizeof(ps::Header), [&](const std::string& bytes) {
    return std::uint64_t{header_of(bytes).text_bytes} + header_of(bytes).streamed_bytes();
  });
  if (frames.empty()) return mutate(input);
  return with_one_changed(std::move(frames), mutate, random, [&](Frame& frame) {
    auto header = header_of(frame.header);
    const std::uint64_t bytes = frame.body.size();
    const bool has_payload = header.streamed_bytes() > 0;
    header.text_bytes =
        static_cast<std::uint32_t>(has_payload ? std::min<std::uint64_t>(header.text_bytes, bytes) : bytes);
    if (has_payload) header.payload_bytes = bytes - header.text_bytes;
    frame.header = bytes_of(&header, sizeof(header));
  });
}

std::string mutate_store_requests(const std::string& input, const MutateBytes& mutate, Random& random) {
  const auto header_of = [](const std::string& bytes) {
    RequestHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    return header;
  };
  auto frames = frames_of(input, sizeof(RequestHeader), [&](const std::string& bytes) {
    const auto header = header_of(bytes);
    return header.key_bytes + (header.verb == StoreVerb::kSet ? static_cast<std::uint64_t>(header.argument) : 0);
  });
  if (frames.empty()) return mutate(input);
  return with_one_changed(std::move(frames), mutate, random, [&](Frame& frame) {
    auto header = header_of(frame.header);
    header.key_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(header.key_bytes, frame.body.size()));
    if (header.verb == StoreVerb::kSet) {
      header.argument = static_cast<std::int64_t>(frame.body.size() - header.key_bytes);
    } else {
      header.key_bytes = static_cast<std::uint32_t>(frame.body.size());
    }
    frame.header = bytes_of(&header, sizeof(header));
  });
}

}  // namespace phalanx::fuzz
