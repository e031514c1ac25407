// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "framework/comm/operations/call.h"

/// The format of recordings. A recording of a rank consists of files, each of which is kMagic followed by entries. An
/// entry is an EntryHead and `payload` bytes. Numbers are in the byte order of the machine. A file is only ever
/// appended to, so a killed rank leaves a file whose last entry may be incomplete.
///
///   DIR/rank<r>.rec          header, groups, and operations: all of them, or with a ring those before the first step
///   DIR/rank<r>.<step>.rec   with a ring: the operations after `step` steps, up to the next of these files
namespace phalanx::recording {

inline constexpr char kMagic[] = "PhalanxRecording 2\n";
inline constexpr char kMagic1[] = "PhalanxRecording 1\n";  // of files without kServer and kAnswer, which are read too
inline constexpr std::size_t kMagicBytes = sizeof(kMagic) - 1;
static_assert(sizeof(kMagic1) == sizeof(kMagic));
inline constexpr std::uint32_t kMarker = 0x59527250;

enum class EntryKind : std::uint32_t {
  kHeader = 1,     // payload: Header as JSON
  kGroup = 2,      // payload: GroupInfo as JSON; its number is EntryHead::group
  kOperation = 3,  // payload: `pieces` checksums of 4 bytes, then the elements that the rank received
  kStep = 4,       // `step` steps are complete; payload: checksum of the parameters that this rank updates, 8 bytes
  kEnd = 5,        // the run has ended well; payload as in kStep
  kServer = 6,     // payload: the name of a connection to a server, whose number is EntryHead::group
  kAnswer = 7,     // payload: `pieces` checksums, then what the server answered, in the format of its client
};

// Flags of operations.
inline constexpr std::uint8_t kMeasured = 1;  // see MeasuredInputs
inline constexpr std::uint8_t kReceived = 2;  // the payload has elements that the rank received
inline constexpr std::uint8_t kFailed = 4;    // the payload is the kind of a CommError, one byte, and its text; the
                                              // kind is kOtherError for another Error, of an answer only
inline constexpr char kOtherError = '\x7f';

struct EntryHead {
  std::uint32_t marker = kMarker;
  std::uint32_t head_sum = 0;     // CRC-32C of the head in which this field is 0
  std::uint32_t payload_sum = 0;  // CRC-32C of the payload
  EntryKind kind = EntryKind::kOperation;
  std::uint64_t payload = 0;   // bytes
  std::uint64_t sequence = 0;  // of the operation in its group, from 1; messages are counted by peer and tag, requests
                               // to servers by connection, where 0 is the attempt to connect
  std::int64_t step = 0;       // the step in which the operation was launched, from 1; 0: before the first step
  std::int64_t elements = 0;   // from here on fields of Call; of a request: the bytes sent
  std::uint64_t detail = 0;    // of a request: CRC-32C of the text and the values of its answer
  std::int32_t peer = -1;
  std::int32_t tag = 0;  // of a request: CRC-32C of everything but the bytes sent
  std::uint32_t group = 0;
  std::uint32_t input_sum = 0;  // CRC-32C of the rank's input
  std::uint32_t pieces = 0;     // number of checksums of named pieces of the input
  Op op = Op::kNone;
  std::int8_t dtype = 0;
  std::uint8_t reduction = 0;
  std::uint8_t flags = 0;

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  Call call() const;
  void set_call(const Call& call);
};
static_assert(std::has_unique_object_representations_v<EntryHead>);

/// The facts about a recorded rank that a replay needs before the first operation.
struct Header {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;
  int local_ranks = 1;
  int threads = 1;           // of LibTorch on this rank
  std::int64_t seed = 0;     // of the config
  std::string backend{};     // connected the ranks
  std::string build{};       // versions of Phalanx and LibTorch, and the kernels that computed
  std::string run_folder{};  // of the recorded run
  std::string config{};      // YAML
  std::uint32_t digest = 0;  // CRC-32C of `config`
  std::int64_t last = 0;     // framework.record_last
};

/// A group of ranks as a rank sees it.
struct GroupInfo {
  std::string name;
  int rank = 0;
  int size = 1;
  std::uint32_t ways = 0;  // bits: the values of NativeWay that the group offers
};

std::string to_json(const Header& header);
std::string to_json(const GroupInfo& group);

/// Throw DataError, with `source` in the message, if the text is not what to_json() returns.
Header header_in(const std::string& json, const std::string& source);
GroupInfo group_in(const std::string& json, const std::string& source);

/// Returns the path of a file of a recording. `segment` is the step at which a file of a ring begins; -1: the first
/// file.
std::string file_of(const std::string& folder, int rank, std::int64_t segment = -1);

/// Returns the checksum of the head of an entry.
std::uint32_t sum_of_head(EntryHead head);

}  // namespace phalanx::recording
