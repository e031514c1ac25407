// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/comm/membership/acceptor.h"
#include "framework/comm/membership/message.h"
#include "framework/comm/membership/view.h"

namespace phalanx::membership {

/// The way in which a member knows that another one is lost.
enum class Certainty {
  kCertain,  // it has ended, or will never again take part: it neither answers nor continues
  kPresumed  // it is silent; perhaps it continues later
};

struct Envelope {
  std::int64_t to = 0;
  Message message{};
};
using Outgoing = std::vector<Envelope>;

/// The id of the witness of a view, which is no member: an Acceptor that outlives the members.
inline constexpr std::int64_t kWitness = -1;

struct Decision {
  View view;          // the next one; this member is in it
  Proposal proposal;  // the same members, with their claims
};

/// One member's part in the agreement on who is left when a view ends. It has neither connections nor clocks: its
/// caller delivers the messages that it returns, in order between two members or not at all, and tells it of losses and
/// of time that has passed. Not thread-safe.
///
/// The protocol is Paxos with the members as acceptors.
///
///   1. A member that has abandoned the view (start()) tells the others (kRevoke). A member that learns of this way or
///      by kPrepare that the view has ended (revoked()) abandons it, too.
///   2. The leader is the member with the lowest id that is not believed lost. It chooses a ballot higher than all that
///      it has seen and sends kPrepare, which names the members that have certainly ended. A member that has abandoned
///      the view answers kPromise, with its claim and the proposal that it has accepted, if any.
///   3. When all members that are not believed lost have promised, and they are a quorum of this ballot, the leader
///      sends those that have promised a kPropose: the accepted proposal of the highest ballot, unchanged, or if there
///      is none, these members and their claims.
///   4. A member accepts it unless it has promised a higher ballot. When a quorum of the ballot has accepted, the
///      proposal is decided. The leader tells everybody (kCommit), and everyone who learns it passes it on once. A
///      member that is not in the next view is fenced.
///   5. Any other message to a member that knows the decision is answered with it, so that a member that was silent
///      learns that it was lost.
///
/// If the leader is lost, the next one does the same with a higher ballot. A proposal may name a member that is lost by
/// now: that view is then ended like any other. Deaths during a ballot that leave it without a quorum begin a new one.
///
/// Quorums: a set of acceptors is a quorum of a ballot if
///   - it has more than half of the weight of all of them. Each member weighs 2. The witness weighs 1; without a
///     witness, the first member weighs 1 more. So of two halves only one is a quorum; or
///   - it has all acceptors that the ballot's kPrepare does not name as ended. So a member goes on alone if all others
///     have certainly ended.
///
/// A member may assume that members of the view that live install the same next view or none:
///   - Two sets with more than half of the weight share a member, which tells the later ballot what it has accepted.
///   - If a ballot is decided by all of those that had not ended before it, whoever leads a later ballot has accepted
///     it, or is among the ended. From its promise on, an acceptor ignores messages of the ended.
///   - If all that had accepted a decided proposal have ended, others may decide otherwise only by accepting it without
///     exception. Of these, none has installed the first one, and after accepting the second none does.
/// A view that only members which have ended had installed does not count: what they wrote to files before is told
/// apart by the view's number.
class Agreement {
 public:
  /// The view's members must be ascending by id, and own_id one of them.
  Agreement(View view, std::int64_t own_id, bool has_witness = false);

  /// This member has abandoned the view. Must be called once.
  Outgoing start(const Claim& claim);

  /// Takes a message of this view. Others, and those of strangers, are ignored.
  Outgoing receive(std::int64_t from, const Message& message);

  Outgoing lost(std::int64_t member, Certainty certainty);

  /// The members that awaited() returns have been silent for too long. They are presumed lost until they send
  /// something. A member that does not lead must wait longer than one that does, since its leader waits for others.
  Outgoing timeout();

  /// Returns true if this member leads a ballot.
  bool leads() const { return phase_ != Phase::kFollow; }

  /// Returns true once the view has ended for another member: this one must abandon it and start().
  bool revoked() const { return revoked_; }

  /// Returns the members that this one waits for: those that have not answered their leader, or the leader.
  std::set<std::int64_t> awaited() const;

  /// Returns the members that have neither certainly ended nor sent anything since they were presumed lost or awaited.
  std::set<std::int64_t> silent() const;

  /// Returns the next view, once it is agreed on and if this member is in it.
  const std::optional<Decision>& decision() const { return decision_; }

  /// Returns true if the others go on without this member. It must not go on.
  bool fenced() const { return fenced_; }

  /// Returns the message that tells others of the decision. Only if there is a decision(), or fenced() by one.
  const std::optional<Message>& commit() const { return commit_; }

  const View& view() const { return view_; }
  const std::set<std::int64_t>& ended() const { return acceptor_.ended(); }

  /// Returns a text that is the same for equal states, for tests.
  std::string fingerprint() const;

 private:
  enum class Phase { kFollow, kPrepare, kPropose };
  using Kind = Message::Kind;

  bool is_member(std::int64_t id) const;
  bool is_lost(std::int64_t id) const { return ended().contains(id) || presumed_.contains(id); }
  std::int64_t next_leader() const;
  template <class Ids>
  bool is_quorum(const Ids& contains) const;

  void send(std::int64_t to, Message message);
  void send_to_others(const Message& message);
  Message to_say(Kind kind) const;
  Outgoing take();

  void take_in(std::int64_t from, const Message& message);
  bool learn(const std::set<std::int64_t>& ended);
  void advance();
  void begin_ballot();
  void propose();
  void install(const Message& commit);

  View view_;
  std::int64_t own_;
  std::vector<std::int64_t> acceptors_;  // the members, and the witness
  Acceptor acceptor_;                    // it also knows who has ended
  std::optional<Claim> claim_;           // from start() on
  std::optional<Message> unanswered_;    // the highest kPrepare that came before start()
  std::set<std::int64_t> presumed_;      // the lost that have not certainly ended
  std::set<std::int64_t> heard_;         // since the last timeout()
  std::set<std::int64_t> ever_heard_;    // in this view
  Ballot highest_;                       // seen

  Phase phase_ = Phase::kFollow;
  Ballot ballot_;                             // that this member leads
  std::set<std::int64_t> without_;            // who had ended when it began
  std::map<std::int64_t, Message> promises_;  // of this ballot
  std::set<std::int64_t> accepts_;

  bool revoked_ = false, fenced_ = false;
  std::optional<Decision> decision_;
  std::optional<Message> commit_;
  Outgoing out_;
};

}  // namespace phalanx::membership
