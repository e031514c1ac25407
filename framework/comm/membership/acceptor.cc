// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/membership/acceptor.h"

namespace phalanx::membership {

std::optional<Message> Acceptor::answer(std::int64_t from, const Message& message) {
  using Kind = Message::Kind;
  if (message.kind != Kind::kPrepare && message.kind != Kind::kPropose) return std::nullopt;
  if (ended_.contains(from)) return std::nullopt;
  ended_.insert(message.ended.begin(), message.ended.end());
  Message answer{.kind = Kind::kRefuse, .view = message.view, .ballot = promised_, .ended = ended_};
  if (message.kind == Kind::kPrepare && message.ballot >= promised_) {
    promised_ = message.ballot;
    answer.kind = Kind::kPromise;
    answer.accepted = accepted_;
    answer.proposal = proposal_;
  } else if (message.kind == Kind::kPropose && message.ballot == promised_) {
    accepted_ = message.ballot;
    proposal_ = message.proposal;
    answer.kind = Kind::kAccept;
  } else if (promised_ < message.ballot) {
    return std::nullopt;  // a proposal of a ballot that was not promised here, which its leader cannot have sent
  }
  answer.ballot = promised_;
  return answer;
}

std::string Acceptor::fingerprint() const {
  return encoded({.kind = Message::Kind::kPromise,
                  .ballot = promised_,
                  .ended = ended_,
                  .accepted = accepted_,
                  .proposal = proposal_});
}

}  // namespace phalanx::membership
