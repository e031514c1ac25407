// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "framework/comm/membership/message.h"

namespace phalanx::membership {

/// The memory of one view's Paxos: what a member or the witness of the view (agreement.h) has promised and accepted.
/// Whoever loses it has ended. Not thread-safe.
class Acceptor {
 public:
  /// Returns the answer to a kPrepare or kPropose, for its sender; nothing if the sender is known to have ended, or if
  /// the message is another one. Learns who has ended.
  ///
  /// A proposal is accepted only after a promise of the same ballot. So its leader, which sends it to those alone whose
  /// promise it has, knows what each of them had accepted before.
  std::optional<Message> answer(std::int64_t from, const Message& message);

  /// From now on, nothing of this member is answered.
  void ended(std::int64_t member) { ended_.insert(member); }
  const std::set<std::int64_t>& ended() const { return ended_; }

  const Ballot& promised() const { return promised_; }
  const Ballot& accepted() const { return accepted_; }  // of proposal(); round 0: none
  const Proposal& proposal() const { return proposal_; }

  bool operator==(const Acceptor&) const = default;

  /// Returns a text that is the same for equal states only, for tests.
  std::string fingerprint() const;

 private:
  Ballot promised_, accepted_;
  Proposal proposal_;
  std::set<std::int64_t> ended_;
};

}  // namespace phalanx::membership
