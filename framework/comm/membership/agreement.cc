// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/membership/agreement.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace phalanx::membership {

Agreement::Agreement(View view, std::int64_t own_id, bool has_witness) : view_(std::move(view)), own_(own_id) {
  for (const auto& member : view_.members) {
    if (member.id < 0 || (!acceptors_.empty() && member.id <= acceptors_.back())) {
      throw std::invalid_argument("the members of a view must be ascending by id");
    }
    acceptors_.push_back(member.id);
  }
  if (!is_member(own_)) throw std::invalid_argument("this member is not in the view that ends");
  if (has_witness) acceptors_.push_back(kWitness);
}

bool Agreement::is_member(std::int64_t id) const {
  return std::ranges::any_of(view_.members, [id](const Member& member) { return member.id == id; });
}

std::int64_t Agreement::next_leader() const {
  for (const auto& member : view_.members) {
    if (!is_lost(member.id)) return member.id;
  }
  return own_;  // not reached: a member does not believe itself lost
}

template <class Ids>
bool Agreement::is_quorum(const Ids& contains) const {
  std::size_t weight = 0, all = 0;
  bool everybody = true;
  const bool has_witness = acceptors_.back() == kWitness;
  for (const auto id : acceptors_) {
    const bool breaks_ties = has_witness ? id == kWitness : id == acceptors_.front();
    const std::size_t own = (id == kWitness ? 0 : 2) + (breaks_ties ? 1 : 0);
    all += own;
    if (contains.contains(id)) {
      weight += own;
    } else {
      everybody &= without_.contains(id);
    }
  }
  return everybody || 2 * weight > all;
}

Message Agreement::to_say(Kind kind) const {
  return {.kind = kind, .view = view_.number, .ballot = ballot_, .ended = ended()};
}

void Agreement::send(std::int64_t to, Message message) {
  if (!ended().contains(to)) out_.push_back({to, std::move(message)});
}

void Agreement::send_to_others(const Message& message) {
  for (const auto id : acceptors_) {
    if (id != own_ && (id != kWitness || message.kind == Kind::kPrepare)) send(id, message);
  }
}

Outgoing Agreement::take() { return std::exchange(out_, {}); }

Outgoing Agreement::start(const Claim& claim) {
  claim_ = claim;
  revoked_ = true;
  if (fenced_ || commit_) return {};
  Message revoke = to_say(Kind::kRevoke);
  revoke.ballot = {};
  send_to_others(revoke);
  if (const auto prepare = std::exchange(unanswered_, std::nullopt)) take_in(prepare->ballot.leader, *prepare);
  advance();
  return take();
}

// Returns false if others know that this member has ended, so that it may not go on.
bool Agreement::learn(const std::set<std::int64_t>& ended) {
  for (const auto id : ended) {
    if (id == own_) return false;
    acceptor_.ended(id);
    presumed_.erase(id);
  }
  return true;
}

Outgoing Agreement::receive(std::int64_t from, const Message& message) {
  const bool stranger = from == own_ || (from != kWitness && !is_member(from));
  if (stranger || message.view != view_.number || ended().contains(from)) return {};
  presumed_.erase(from);
  heard_.insert(from);
  ever_heard_.insert(from);
  if (commit_) {
    if (message.kind != Kind::kCommit) send(from, *commit_);
  } else if (!fenced_) {
    take_in(from, message);
  }
  return take();
}

void Agreement::take_in(std::int64_t from, const Message& message) {
  if (!learn(message.ended)) {
    fenced_ = true;
    return;
  }
  revoked_ = true;
  highest_ = std::max(highest_, message.ballot);
  switch (message.kind) {
    case Kind::kRevoke:
      break;
    case Kind::kPrepare:
      if (!claim_) {
        if (!unanswered_ || unanswered_->ballot < message.ballot) unanswered_ = message;
        return;
      }
      [[fallthrough]];
    case Kind::kPropose:
      if (auto answer = acceptor_.answer(from, message)) {
        answer->claim = claim_.value_or(Claim{});
        if (answer->kind == Kind::kPromise) phase_ = Phase::kFollow;
        send(from, *std::move(answer));
      }
      break;
    case Kind::kPromise:
      if (phase_ == Phase::kPrepare && message.ballot == ballot_) promises_.insert({from, message});
      break;
    case Kind::kAccept:
      if (phase_ == Phase::kPropose && message.ballot == ballot_) accepts_.insert(from);
      break;
    case Kind::kRefuse:
      if (ballot_ < message.ballot) phase_ = Phase::kFollow;
      break;
    case Kind::kCommit:
      install(message);
      break;
  }
  advance();
}

Outgoing Agreement::lost(std::int64_t member, Certainty certainty) {
  if (member == own_ || !is_member(member) || commit_ || fenced_) return {};
  if (certainty == Certainty::kCertain) {
    learn({member});
  } else if (!ended().contains(member)) {
    presumed_.insert(member);
  }
  advance();
  return take();
}

std::set<std::int64_t> Agreement::awaited() const {
  std::set<std::int64_t> awaited;
  if (!claim_ || commit_ || fenced_) return awaited;
  const auto waits_for = [&](std::int64_t id) { return id != own_ && !is_lost(id); };
  if (phase_ == Phase::kPrepare) {
    for (const auto id : acceptors_) {
      if (waits_for(id) && !promises_.contains(id)) awaited.insert(id);
    }
  } else if (phase_ == Phase::kPropose) {
    for (const auto& [id, promise] : promises_) {
      if (waits_for(id) && !accepts_.contains(id)) awaited.insert(id);
    }
  } else {
    const auto leader = highest_.round > 0 && waits_for(highest_.leader) ? highest_.leader : next_leader();
    if (waits_for(leader)) awaited.insert(leader);
  }
  return awaited;
}

std::set<std::int64_t> Agreement::silent() const {
  auto silent = awaited();
  silent.insert(presumed_.begin(), presumed_.end());
  silent.erase(kWitness);
  return silent;
}

Outgoing Agreement::timeout() {
  if (!claim_ || commit_ || fenced_) return {};
  const auto silent = awaited();
  presumed_.insert(silent.begin(), silent.end());
  const bool leads = phase_ != Phase::kFollow;
  for (const auto& member : view_.members) {
    if (leads) break;
    // Members before this one would be the next leaders. The others follow, as this one does, and need not say anything
    // except that they have abandoned the view.
    const auto& heard = member.id < own_ ? heard_ : ever_heard_;
    if (member.id != own_ && !heard.contains(member.id) && !ended().contains(member.id)) presumed_.insert(member.id);
  }
  heard_.clear();
  const auto before = std::pair(ballot_, phase_);
  advance();
  if (leads && !commit_ && before == std::pair(ballot_, phase_)) begin_ballot();
  return take();
}

// Goes on as far as possible without more messages.
void Agreement::advance() {
  if (!claim_ || commit_ || fenced_) return;
  if (phase_ == Phase::kFollow) {
    const bool has_leader = highest_.round > 0 && highest_.leader != own_ && !is_lost(highest_.leader);
    if (!has_leader && next_leader() == own_) begin_ballot();
    return;
  }
  if (phase_ == Phase::kPrepare && awaited().empty()) {
    if (is_quorum(promises_)) {
      propose();
    } else if (without_ != ended()) {
      begin_ballot();
    }
  }
  if (phase_ != Phase::kPropose) return;
  if (is_quorum(accepts_)) {
    Message commit = to_say(Kind::kCommit);
    commit.proposal = acceptor_.proposal();
    install(commit);
  } else if (awaited().empty() && without_ != ended()) {
    begin_ballot();
  }
}

void Agreement::begin_ballot() {
  ballot_ = highest_ = {.round = highest_.round + 1, .leader = own_};
  without_ = ended();
  phase_ = Phase::kPrepare;
  promises_.clear();
  accepts_.clear();
  const Message prepare = to_say(Kind::kPrepare);
  Message promise = acceptor_.answer(own_, prepare).value();
  promise.claim = *claim_;
  promises_.insert({own_, std::move(promise)});
  send_to_others(prepare);
  advance();
}

void Agreement::propose() {
  Message proposal = to_say(Kind::kPropose);
  const auto accepted = std::ranges::max_element(promises_, {}, [](const auto& one) { return one.second.accepted; });
  proposal.proposal = accepted->second.proposal;
  if (accepted->second.accepted.round == 0) {
    for (const auto& [id, promise] : promises_) {
      if (id != kWitness && !ended().contains(id)) proposal.proposal.members.push_back({id, promise.claim});
    }
  }
  phase_ = Phase::kPropose;
  for (const auto& [id, promise] : promises_) {
    if (id != own_) send(id, proposal);
  }
  acceptor_.answer(own_, proposal);
  accepts_ = {own_};
}

void Agreement::install(const Message& commit) {
  const bool differs = acceptor_.proposal() != commit.proposal;
  if (acceptor_.accepted() > commit.ballot && differs) return;  // all that had accepted the decided one have ended
  commit_ = to_say(Kind::kCommit);
  commit_->ballot = commit.ballot;
  commit_->proposal = commit.proposal;
  fenced_ = !commit.proposal.contains(own_);
  if (!fenced_) {
    Decision decision{.view = {.number = view_.number + 1}, .proposal = commit.proposal};
    for (const auto& member : view_.members) {
      if (commit.proposal.contains(member.id)) decision.view.members.push_back(member);
    }
    decision_ = std::move(decision);
  }
  send_to_others(*commit_);
}

std::string Agreement::fingerprint() const {
  std::string text;
  const auto add = [&](std::int64_t number) { text += std::to_string(number) + ' '; };
  const auto add_ids = [&](const std::set<std::int64_t>& ids) {
    for (const auto id : ids) add(id);
    text += '/';
  };
  const auto add_ballot = [&](const Ballot& ballot) {
    add(ballot.round);
    add(ballot.leader);
  };
  const auto add_message = [&](const std::optional<Message>& message) { text += message ? encoded(*message) : "-"; };
  text += acceptor_.fingerprint();
  add_ballot(ballot_);
  add_ballot(highest_);
  add_ids(presumed_);
  add_ids(heard_);
  add_ids(ever_heard_);
  add_ids(without_);
  add_ids(accepts_);
  add(static_cast<int>(phase_));
  text += claim_ ? 's' : '-';
  text += revoked_ ? 'r' : '-';
  text += fenced_ ? 'f' : '-';
  add_message(unanswered_);
  add_message(commit_);
  for (const auto& [id, promise] : promises_) {
    add(id);
    add_message(promise);
  }
  return text;
}

}  // namespace phalanx::membership
