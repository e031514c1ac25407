// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// The messages by which the members of a view agree on the next one (agreement.h).
namespace phalanx::membership {

/// An attempt of one member to get a proposal accepted. A ballot of round 0 is none.
struct Ballot {
  std::int64_t round = 0;
  std::int64_t leader = 0;  // the member whose attempt it is

  auto operator<=>(const Ballot&) const = default;
};

/// The progress of a member when its view ended. Counts of steps since the start of the job.
struct Claim {
  std::int64_t updated = 0;   // steps whose commit point it has passed, so that it may have updated its parameters
  std::int64_t complete = 0;  // steps whose gradients it has completely; not less than `updated`

  bool operator==(const Claim&) const = default;
};

/// The next view, as members of the current one with their claims.
struct Proposal {
  struct Entry {
    std::int64_t id = 0;
    Claim claim{};

    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> members{};  // ascending by id

  bool contains(std::int64_t id) const;

  /// Returns the number of steps after which the next view goes on: those whose commit point one of its members has
  /// passed. A member whose claim is complete for it rolls its step forward or back to it. One whose claim is not
  /// needs the state of another member.
  std::int64_t step() const;

  bool operator==(const Proposal&) const = default;
};

struct Message {
  enum class Kind : std::uint8_t {
    kRevoke = 1,  // the view has ended
    kPrepare,     // leader: abandon the view, and say what you have
    kPromise,     // I have abandoned it, and accept nothing of a lower ballot any more
    kPropose,     // leader: accept this
    kAccept,      // I have accepted the proposal of this ballot
    kRefuse,      // I have promised `ballot`, which is higher than yours
    kCommit,      // the proposal is the next view
  };
  Kind kind{};
  std::int64_t view = 0;           // number of the view that ends
  Ballot ballot{};                 // all but kRevoke
  std::set<std::int64_t> ended{};  // members that have certainly ended; kPrepare: those that its quorums do not need
  Claim claim{};                   // kPromise
  Ballot accepted{};               // kPromise: the ballot of `proposal`
  Proposal proposal{};             // kPropose, kCommit; kPromise if the member has accepted one

  bool operator==(const Message&) const = default;
};

/// Limits of a message. A message of the largest view is shorter than kMaxMessageBytes.
inline constexpr std::size_t kMaxMembers = 1 << 16;
inline constexpr std::size_t kMaxMessageBytes = 80 + kMaxMembers * 32;

/// Returns the message as bytes. Both ends must run the same program, since integers are sent as they lie in memory.
std::string encoded(const Message& message);

/// Returns the message that these bytes are. Throws a CommError::kSystem, which says what is wrong, for any others.
Message decoded(std::string_view bytes);

}  // namespace phalanx::membership
