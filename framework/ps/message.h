// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "framework/base/error.h"

/// What clients and servers say to each other.
///
/// On the wire a message is a Header as it lies in memory (little-endian), `text_bytes` of text, and `payload_bytes` of
/// tensor elements, unless those are fetched from or written to the sender's memory directly (kInMemory). Every request
/// gets exactly one reply, with the same id; requests of a connection are carried out in the order in which they were
/// sent, but a pull that has to wait for other clients does not hold up what comes after it.
///
/// A client whose connection breaks may connect again as the same incarnation, and sends what was not answered again,
/// with the same ids and in the same order. What was applied is not applied again, but answered.
namespace phalanx::ps {

enum class Verb : std::uint8_t {
  kHello = 1,   // comes first, twice (greeting.h)
  kCreate,      // text: TableSpec as YAML. Reply: table = its number
  kPush,        // payload: an update of the shard by rule `rule`; text, of a dense table: UpdateInfo::unused
                // (element_ranges.h). Reply: version = the shard's after it
  kPull,        // Reply: the shard's values; version = the shard's
  kExchange,    // a push and then a pull, with no other update between the two
  kFree,        // forgets the table; also for all other clients
  kStatus,      // Reply: text = what ShardHost::status() says
  kLeave,       // the client ends: nothing of it need be remembered
  kClear,       // forgets all tables of the job. Refused while others of the job are connected
  kVersion,     // text: name of table `table`. Reply: version = that with which the server started
  kReadState,   // of a dense table. Reply: tensor `rows` of Shard::state(), which waits for no clock
  kWriteState,  // payload: what that tensor becomes
  kPing,        // is answered at once, whatever else waits
  kReadRows,    // of a sparse table: up to `rows` of its rows with all that rules remember of them, from place `clock`
                // on, 0 first. Waits for no clock. Reply: room for that many, of which `rows` are filled; clock = the
                // place to go on from, -1 after the last; version = how many rows there are
  kWriteRows,   // payload: `rows` such rows, which replace those of the same keys. Is no update

  // Between servers that hold the same part (replica_message.h); a client's are refused.
  kReplica = 64,  // a ReplicaMessage
  kForgetReads,   // in one: the client's connection has ended
  kStopWaiting,   // in one: others do not wait for the client any more
};

/// Whether a tensor travels to the server, and whether one travels back.
inline bool pushes(Verb verb) {
  return verb == Verb::kPush || verb == Verb::kExchange || verb == Verb::kWriteState || verb == Verb::kWriteRows;
}
inline bool pulls(Verb verb) {
  return verb == Verb::kPull || verb == Verb::kExchange || verb == Verb::kReadState || verb == Verb::kReadRows;
}

enum class Status : std::uint8_t {
  kRequest = 0,  // not a reply
  kDone,
  kRefused,  // the request makes no sense to this server; text says why. Nothing has changed
};

enum Flags : std::uint8_t {
  kInMemory = 1,  // the tensor is at `address` in the client's memory: nothing of it is in the message or the reply
  kTick = 2,      // push: the last one of this client's clock `clock`
  kReadOnly = 4,  // pull from a sparse table: rows that do not exist are not created
};

inline constexpr std::uint32_t kMagic = 0x53504850;  // "PHPS"
inline constexpr std::uint16_t kProtocol = 3;
inline constexpr std::uint32_t kMostText = 1 << 20;

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t protocol = kProtocol;
  Verb verb{};
  Status status = Status::kRequest;
  std::uint64_t id = 0;  // of the request; those of a client to a server only grow
  std::uint32_t table = 0;
  std::uint16_t rule = 0;  // of the table's list
  std::uint8_t dtype = 0;  // c10::ScalarType
  std::uint8_t flags = 0;
  std::int64_t clock = 0;       // the client's, where the table is not asynchronous
  std::int64_t version = 0;     // push: that of the values from which the update was computed
  std::int64_t waited_for = 0;  // reply to a pull: how many clocks the slowest client was behind this one
  double scale = 1;             // push: of the update
  std::uint64_t address = 0;
  std::uint64_t payload_bytes = 0;  // also of a payload in memory: request: Transfer::sent; reply: Transfer::returned
  std::uint32_t text_bytes = 0;
  std::uint32_t rows = 0;  // of a request to a sparse table: how many keys it names; of others: see there

  bool in_memory() const { return (flags & kInMemory) != 0; }
  bool ticks() const { return (flags & kTick) != 0; }
  bool read_only() const { return (flags & kReadOnly) != 0; }
  std::uint64_t streamed_bytes() const { return in_memory() ? 0 : payload_bytes; }
};
static_assert(sizeof(Header) == 80);

struct Message {
  Header header{};
  std::string text{};
  at::Tensor payload{};  // undefined where there is none
};

/// What travels of the tensor that belongs to a request: its first `sent` bytes to the server, and back `returned`
/// bytes, from `returned_at` on. Client and server work it out alike.
struct Transfer {
  std::uint64_t sent = 0;
  std::uint64_t returned = 0;
  std::uint64_t returned_at = 0;
  c10::ScalarType dtype = c10::kByte;
};

/// Of a shard's values, all of which travel.
inline Transfer dense_transfer(Verb verb, std::uint64_t bytes, c10::ScalarType dtype) {
  return {.sent = pushes(verb) ? bytes : 0, .returned = pulls(verb) ? bytes : 0, .dtype = dtype};
}

/// A stream that does not follow the protocol, or comes to its end. The connection is of no more use.
class ConnectionError : public Error {
 public:
  using Error::Error;
};

}  // namespace phalanx::ps
