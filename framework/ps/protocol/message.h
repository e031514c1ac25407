// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "framework/base/error.h"

/// The messages that clients and servers exchange.
///
/// On the wire, a message is a Header as it lies in memory (little-endian), `text_bytes` of text, and `payload_bytes`
/// of tensor elements, unless these are read from or written to the sender's memory directly (kInMemory). Every request
/// gets exactly one reply, which has the same id. The requests of a connection are carried out in the order in which
/// they were sent, except that a pull that has to wait for other clients does not delay the requests after it.
///
/// A client whose connection breaks may connect again as the same incarnation. It then sends all unanswered requests
/// again, with the same ids and in the same order. Requests that had been applied are answered but not applied again.
namespace phalanx::ps {

enum class Verb : std::uint8_t {
  kHello = 1,   // the first two messages of a connection (greeting.h)
  kCreate,      // text: TableSpec as YAML. Reply: table = number of the table
  kPush,        // payload: an update of the shard by rule `rule`; text, for dense tables: UpdateInfo::unused
                // (element_ranges.h). Reply: version = the shard's version after it
  kPull,        // Reply: the shard's values; version = the shard's version
  kExchange,    // a push and then a pull, with no other update between the two
  kFree,        // removes the table for all clients
  kStatus,      // Reply: text = ShardHost::status()
  kLeave,       // the client ends, and the server can forget its state
  kClear,       // removes all tables of the job. Refused while other clients of the job are connected
  kVersion,     // text: name of table `table`. Reply: version = its version when the server started
  kReadState,   // dense tables only. Reply: tensor `rows` of Shard::state(). Does not wait for any clock
  kWriteState,  // payload: the new contents of that tensor
  kPing,        // answered at once, even if other requests are waiting
  kReadRows,    // sparse tables only. Reads up to `rows` rows, with the state of the rules, starting at place `clock`,
                // 0 at first. Does not wait for any clock. Reply: a buffer of that size, in which `rows` rows are
                // filled; clock = the place to continue from, -1 after the last; version = number of existing rows
  kWriteRows,   // payload: `rows` such rows, which replace the rows with the same keys. Not counted as an update

  // Exchanged between servers that hold the same part (replica_message.h). Refused if they come from a client.
  kReplica = 64,  // a ReplicaMessage
  kForgetReads,   // inside a ReplicaMessage: the client's connection has ended
  kStopWaiting,   // inside a ReplicaMessage: other clients stop waiting for this one
};

/// Return true if a tensor travels to the server, and if one travels back.
inline bool pushes(Verb verb) {
  return verb == Verb::kPush || verb == Verb::kExchange || verb == Verb::kWriteState || verb == Verb::kWriteRows;
}
inline bool pulls(Verb verb) {
  return verb == Verb::kPull || verb == Verb::kExchange || verb == Verb::kReadState || verb == Verb::kReadRows;
}

enum class Status : std::uint8_t {
  kRequest = 0,  // not a reply
  kDone,
  kRefused,  // the server cannot carry out the request; text says why. Nothing has changed
};

enum Flags : std::uint8_t {
  kInMemory = 1,  // the tensor is at `address` in the client's memory and is not part of the message or the reply
  kTick = 2,      // push: this is the last push of clock `clock` of the client
  kReadOnly = 4,  // pull from a sparse table: rows that do not exist are not created
  kSummed = 8,    // the message has the CRC-32C of its tensor (Header::sum()). Request: the reply must have it too
};

inline constexpr std::uint32_t kMagic = 0x53504850;  // "PHPS"
inline constexpr std::uint16_t kProtocol = 4;
inline constexpr std::uint32_t kMaxText = 1 << 20;

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t protocol = kProtocol;
  Verb verb{};
  Status status = Status::kRequest;
  std::uint64_t id = 0;  // id of the request; ids of a client to a server increase
  std::uint32_t table = 0;
  std::uint16_t rule = 0;  // index into the table's rules
  std::uint8_t dtype = 0;  // c10::ScalarType
  std::uint8_t flags = 0;
  std::int64_t clock = 0;       // the client's clock, unless the table is asynchronous
  std::int64_t version = 0;     // push: version of the values from which the update was computed
  std::int64_t waited_for = 0;  // reply to a pull: how many clocks the slowest client was behind this one
  double scale = 1;             // push: factor for the update
  std::uint64_t address = 0;
  std::uint64_t payload_bytes = 0;  // also for kInMemory. Request: Transfer::sent; reply: Transfer::returned
  std::uint32_t text_bytes = 0;
  std::uint32_t rows = 0;  // request to a sparse table: number of keys; other requests: see Verb

  bool in_memory() const { return (flags & kInMemory) != 0; }
  bool ticks() const { return (flags & kTick) != 0; }
  bool read_only() const { return (flags & kReadOnly) != 0; }
  bool summed() const { return (flags & kSummed) != 0; }

  /// The checksum of a message with kSummed, in a field that messages of its kind do not use otherwise.
  std::uint32_t sum() const {
    return status == Status::kRequest ? static_cast<std::uint32_t>(waited_for) : static_cast<std::uint32_t>(address);
  }
  void set_sum(std::uint32_t sum) {
    flags |= kSummed;
    if (status == Status::kRequest) {
      waited_for = sum;
    } else {
      address = sum;
    }
  }
  std::uint64_t streamed_bytes() const { return in_memory() ? 0 : payload_bytes; }
};
static_assert(sizeof(Header) == 80);

struct Message {
  Header header{};
  std::string text{};
  at::Tensor payload{};  // may be undefined
};

/// The part of a request's tensor that is transferred: its first `sent` bytes to the server, and `returned` bytes back,
/// starting at `returned_at`. Client and server compute it independently from the request.
struct Transfer {
  std::uint64_t sent = 0;
  std::uint64_t returned = 0;
  std::uint64_t returned_at = 0;
  c10::ScalarType dtype = c10::kByte;
};

/// Returns the transfer of a dense shard, whose values are always transferred completely.
inline Transfer dense_transfer(Verb verb, std::uint64_t bytes, c10::ScalarType dtype) {
  return {.sent = pushes(verb) ? bytes : 0, .returned = pulls(verb) ? bytes : 0, .dtype = dtype};
}

/// The stream violates the protocol or has ended. The connection cannot be used any more.
class ConnectionError : public Error {
 public:
  using Error::Error;
};

}  // namespace phalanx::ps
