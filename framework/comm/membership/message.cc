// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/membership/message.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "framework/base/error.h"

namespace phalanx::membership {
namespace {

constexpr std::uint8_t kVersion = 1;

class Writer {
 public:
  template <class T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void put(const Ballot& ballot) {
    put(ballot.round);
    put(ballot.leader);
  }
  void put(const Claim& claim) {
    put(claim.updated);
    put(claim.complete);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

[[noreturn]] void refuse(const std::string& why) {
  throw CommError(CommError::Kind::kSystem, "a message of the agreement on the next view cannot be read: " + why);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T get() {
    if (bytes_.size() < sizeof(T)) refuse("it is too short");
    T value;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }

  std::int64_t number(const char* what) {
    const auto value = get<std::int64_t>();
    if (value < 0) refuse(std::string(what) + " is negative");
    return value;
  }

  Ballot ballot() {
    const auto round = number("a round");
    return {.round = round, .leader = number("the leader of a ballot")};
  }

  Claim claim() {
    const auto updated = number("a number of steps");
    const Claim claim{.updated = updated, .complete = number("a number of steps")};
    if (claim.complete < claim.updated) refuse("a member claims an update without its gradients");
    return claim;
  }

  // Returns the length of a list with entries of at least `least` bytes.
  std::uint32_t length(std::size_t least) {
    const auto count = get<std::uint32_t>();
    if (count > kMaxMembers) refuse("it names more than " + std::to_string(kMaxMembers) + " members");
    if (count * least > bytes_.size()) refuse("it is too short");
    return count;
  }

  // Returns the next id of a list in ascending order.
  std::int64_t id_after(std::int64_t before) {
    const auto id = number("the id of a member");
    if (id <= before) refuse("the ids of members are not in ascending order");
    return id;
  }

  void expect_end() const {
    if (!bytes_.empty()) refuse("it is too long");
  }

 private:
  std::string_view bytes_;
};

}  // namespace

bool Proposal::contains(std::int64_t id) const {
  return std::ranges::any_of(members, [id](const Entry& entry) { return entry.id == id; });
}

std::int64_t Proposal::step() const {
  std::int64_t step = 0;
  for (const auto& entry : members) step = std::max(step, entry.claim.updated);
  return step;
}

std::string encoded(const Message& message) {
  Writer out;
  out.put(kVersion);
  out.put(message.kind);
  out.put(message.view);
  out.put(message.ballot);
  out.put(message.claim);
  out.put(message.accepted);
  out.put(static_cast<std::uint32_t>(message.ended.size()));
  for (const auto id : message.ended) out.put(id);
  out.put(static_cast<std::uint32_t>(message.proposal.members.size()));
  for (const auto& entry : message.proposal.members) {
    out.put(entry.id);
    out.put(entry.claim);
  }
  return out.take();
}

Message decoded(std::string_view bytes) {
  if (bytes.size() > kMaxMessageBytes) refuse("it is too long");
  Reader in(bytes);
  if (in.get<std::uint8_t>() != kVersion) refuse("it is of another version of Phalanx");
  Message message;
  message.kind = in.get<Message::Kind>();
  if (message.kind < Message::Kind::kRevoke || message.kind > Message::Kind::kCommit) refuse("its kind is unknown");
  message.view = in.number("the number of a view");
  message.ballot = in.ballot();
  message.claim = in.claim();
  message.accepted = in.ballot();
  std::int64_t id = -1;
  for (auto left = in.length(sizeof(id)); left > 0; --left) {
    id = in.id_after(id);
    message.ended.insert(message.ended.end(), id);
  }
  id = -1;
  for (auto left = in.length(sizeof(id) + sizeof(Claim)); left > 0; --left) {
    id = in.id_after(id);
    message.proposal.members.push_back({.id = id, .claim = in.claim()});
  }
  in.expect_end();
  const bool proposes = message.kind == Message::Kind::kPropose || message.kind == Message::Kind::kCommit ||
                        (message.kind == Message::Kind::kPromise && message.accepted.round > 0);
  if (proposes == message.proposal.members.empty()) refuse("it has a proposal where none belongs, or lacks one");
  if (message.kind != Message::Kind::kRevoke && message.ballot.round == 0) refuse("it has no ballot");
  return message;
}

}  // namespace phalanx::membership
