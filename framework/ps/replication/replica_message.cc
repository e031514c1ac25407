// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/replication/replica_message.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "framework/base/checked_product.h"
#include "framework/base/json.h"
#include "framework/ps/protocol/checksum.h"

namespace phalanx::ps {
namespace {

// A state has the values of the shards, what their rules remember for each value, and its description.
constexpr std::uint64_t kStatesPerValue = 4, kDescription = 16 << 20;

// Returns the length limit of a payload.
std::uint64_t max_payload(std::int64_t memory_bytes) {
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const std::uint64_t host = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto values = static_cast<std::uint64_t>(memory_bytes);
  return values > host / kStatesPerValue ? host : std::min(host, kStatesPerValue * values + kDescription);
}

// The beginning of the text of kApply, before the job and the request's own text.
struct Fixed {
  Header request{};
  std::uint64_t incarnation = 0;
  std::int32_t number = 0;
  std::uint32_t job_bytes = 0;
};
static_assert(sizeof(Fixed) == sizeof(Header) + 16);

// A state as bytes: the length of a JSON text (8 bytes), the text, and the elements of the tensors, each aligned to
// kAligned bytes.
constexpr std::size_t kAligned = 64;

std::size_t aligned(std::size_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }

at::Tensor bytes_of(const HostState& state) {
  auto tensors = nlohmann::json::array();
  std::size_t size = 0;
  for (const auto& [name, tensor] : state.tensors) {
    tensors.push_back({{"name", name},
                       {"dtype", static_cast<int>(tensor.scalar_type())},
                       {"sizes", tensor.sizes().vec()},
                       {"begin", size}});
    size += aligned(tensor.nbytes());
  }
  const std::string text = nlohmann::json{{"description", state.description}, {"tensors", tensors}}.dump();
  const std::uint64_t length = text.size();
  const std::size_t begin = aligned(sizeof(length) + text.size());
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(begin + size)}, at::kByte);
  auto* const out = bytes.mutable_data_ptr<std::uint8_t>();
  std::memcpy(out, &length, sizeof(length));
  std::memcpy(out + sizeof(length), text.data(), text.size());
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const at::Tensor values = state.tensors[i].second.contiguous();
    if (values.nbytes() == 0) continue;
    std::memcpy(out + begin + tensors[i].at("begin").get<std::size_t>(), values.const_data_ptr(), values.nbytes());
  }
  return bytes;
}

// The tensors are views of the bytes.
HostState state_of(const at::Tensor& bytes) {
  const auto* const in = bytes.const_data_ptr<std::uint8_t>();
  const std::size_t all = bytes.nbytes();
  std::uint64_t length = 0;
  if (all < sizeof(length)) throw ConnectionError("it is too short");
  std::memcpy(&length, in, sizeof(length));
  if (length > all - sizeof(length)) throw ConnectionError("it is too short");
  const auto* const text = reinterpret_cast<const char*>(in) + sizeof(length);
  const auto description = parse_json({text, length}, "the description of its state").raw();
  const std::size_t begin = aligned(sizeof(length) + length);
  HostState state{.description = description.at("description")};
  for (const auto& one : description.at("tensors")) {
    const auto sizes = one.at("sizes").get<std::vector<std::int64_t>>();
    const auto dtype = static_cast<c10::ScalarType>(one.at("dtype").get<int>());
    const auto count = checked_product(sizes, static_cast<std::int64_t>(c10::elementSize(dtype)));
    if (!count) throw ConnectionError("tensor " + one.at("name").get<std::string>() + " has an impossible shape");
    const auto from = static_cast<std::int64_t>(begin + one.at("begin").get<std::size_t>());
    state.tensors.emplace_back(one.at("name"), bytes.narrow(0, from, *count).view(dtype).view(sizes));
  }
  return state;
}

}  // namespace

Message encoded(const ReplicaMessage& message) {
  Message out{.header = {.verb = Verb::kReplica,
                         .id = static_cast<std::uint64_t>(message.number),
                         .rule = static_cast<std::uint16_t>(message.kind),
                         .clock = static_cast<std::int64_t>(message.start),
                         .version = message.epoch,
                         .waited_for = message.refused ? 1 : 0}};
  if (message.kind == ReplicaMessage::Kind::kInstall) {
    out.payload = bytes_of(message.state);
    out.header.payload_bytes = out.payload.nbytes();
  } else if (message.kind == ReplicaMessage::Kind::kApply) {
    const auto& job = message.client.job;
    const Fixed fixed{.request = message.request.header,
                      .incarnation = message.client.incarnation,
                      .number = message.client.number,
                      .job_bytes = static_cast<std::uint32_t>(job.size())};
    out.text.assign(reinterpret_cast<const char*>(&fixed), sizeof(fixed));
    out.text += job + message.request.text;
    out.payload = message.request.payload;
    if (out.payload.defined()) {
      out.header.payload_bytes = out.payload.nbytes();
      out.header.dtype = static_cast<std::uint8_t>(out.payload.scalar_type());
    }
  } else {
    out.text = message.why;
  }
  return out;
}

ReplicaMessage decoded(Message message) {
  const auto kind = static_cast<ReplicaMessage::Kind>(message.header.rule);
  ReplicaMessage all{.kind = kind,
                     .epoch = message.header.version,
                     .number = static_cast<std::int64_t>(message.header.id),
                     .start = static_cast<std::uint64_t>(message.header.clock),
                     .refused = message.header.waited_for != 0};
  if (message.header.verb != Verb::kReplica) throw ConnectionError("another server sent an unknown message");
  if (kind == ReplicaMessage::Kind::kInstall) {
    if (!message.payload.defined()) throw ConnectionError("another server sent no state");
    try {
      all.state = state_of(message.payload);
    } catch (const std::exception& error) {
      throw ConnectionError(std::string("another server sent a state that cannot be read: ") + error.what());
    }
  } else if (kind == ReplicaMessage::Kind::kApply) {
    Fixed fixed;
    if (message.text.size() < sizeof(fixed)) throw ConnectionError("another server sent an incomplete request");
    std::memcpy(static_cast<void*>(&fixed), message.text.data(), sizeof(fixed));
    if (message.text.size() - sizeof(fixed) < fixed.job_bytes)
      throw ConnectionError("another server sent an incomplete job name");
    all.client = {.job = message.text.substr(sizeof(fixed), fixed.job_bytes),
                  .number = fixed.number,
                  .incarnation = fixed.incarnation};
    all.request = {.header = fixed.request,
                   .text = message.text.substr(sizeof(fixed) + fixed.job_bytes),
                   .payload = std::move(message.payload)};
    if (const auto damage = damage_of(all.request.header, all.request.payload); !damage.empty()) {
      throw ConnectionError("another server sent a request of which " + damage);
    }
  } else {
    all.why = std::move(message.text);
  }
  return all;
}

at::Tensor room_for_replica(const Message& begun, std::int64_t memory_bytes) {
  const std::uint64_t bytes = begun.header.payload_bytes;
  if (begun.header.verb != Verb::kReplica) throw ConnectionError("another server sent an unknown message");
  if (bytes > max_payload(memory_bytes)) throw ConnectionError("another server sent a payload that is too long");
  try {  // LibTorch throws its own error for an unknown dtype, and if there is not enough memory
    const auto dtype = static_cast<c10::ScalarType>(begun.header.dtype);
    const std::uint64_t size = c10::elementSize(dtype);
    if (bytes % size != 0) throw ConnectionError("another server sent an incomplete element");
    return at::empty({static_cast<std::int64_t>(bytes / size)}, at::dtype(dtype));
  } catch (const c10::Error& error) {
    throw ConnectionError(std::string("another server sent a payload that cannot be received: ") +
                          error.what_without_backtrace());
  }
}

}  // namespace phalanx::ps
