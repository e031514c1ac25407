// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/replication/replica.h"

#include <algorithm>
#include <exception>

namespace phalanx::ps {

Replica::Replica(int member, int members, HostLimits limits, std::uint64_t start, Send send)
    : member_(member),
      limits_(limits),
      send_(std::move(send)),
      start_(start),
      host_(std::make_unique<ShardHost>(limits)),
      peers_(static_cast<std::size_t>(members)) {}

void Replica::lead(std::int64_t epoch) {
  role_ = Role::kLeader;
  epoch_ = epoch;
  for (int i = 0; i < members(); ++i) peers_[i] = {.in_view = i != member_ && i != leader_};
  held_replies_.clear();
}

bool Replica::begin() {
  if (role_ != Role::kBlank || member_ != 0 || epoch_ >= 0) return false;
  lead(0);
  return true;
}

bool Replica::take_over() {
  if (role_ != Role::kFollower) return false;
  lead((epoch_ / members() + 1) * members() + member_);
  host_->forget_all_reads();
  return true;
}

void Replica::become_blank(std::int64_t epoch) {
  role_ = Role::kBlank;
  epoch_ = std::max(epoch_, epoch);
  host_ = std::make_unique<ShardHost>(limits_);
  held_replies_.clear();
}

// Returns true if the request was refused at once.
bool Replica::execute(const ClientId& client, const Message& request, const ShardHost::Answer& answer) {
  if (request.header.verb == Verb::kForgetReads) {
    host_->forget_reads(client);
    return false;
  }
  if (request.header.verb == Verb::kStopWaiting) {
    host_->stop_waiting_for(client);
    return false;
  }
  const auto refused = std::make_shared<bool>(false);
  host_->handle(client, request, [refused, answer](Message reply, const at::Tensor& values) {
    *refused = reply.header.status == Status::kRefused;
    answer(std::move(reply), values);
  });
  return *refused;
}

void Replica::submit(const ClientId& client, const Message& request, const ShardHost::Answer& answer) {
  ++applied_;
  const bool refused = execute(client, request, answer);
  for (int i = 0; i < members(); ++i) {
    if (!peers_[i].connected) continue;
    send_(i, {.kind = ReplicaMessage::Kind::kApply,
              .epoch = epoch_,
              .number = applied_,
              .client = client,
              .request = request,
              .refused = refused});
  }
}

void Replica::when_applied(std::function<void()> release_replies) {
  if (role_ != Role::kLeader) return;
  held_replies_.emplace_back(applied_, std::move(release_replies));
  this->release_replies();
}

void Replica::release_replies() {
  if (role_ != Role::kLeader) return;
  std::int64_t everywhere = applied_;
  for (const auto& peer : peers_) {
    if (peer.in_view) everywhere = std::min(everywhere, peer.applied);
  }
  while (!held_replies_.empty() && held_replies_.front().first <= everywhere) {
    const auto give = std::move(held_replies_.front().second);
    held_replies_.pop_front();
    give();
  }
}

void Replica::connected(int member) {
  if (role_ != Role::kLeader) return;
  peers_[member] = {.in_view = true, .connected = true};
  send_(member, {.kind = ReplicaMessage::Kind::kInstall,
                 .epoch = epoch_,
                 .number = applied_,
                 .start = start_,
                 .state = host_->state()});
}

void Replica::disconnected(int member) { peers_[member].connected = false; }

void Replica::remove_from_view(int member) {
  peers_[member] = {};
  release_replies();
}

std::vector<int> Replica::lagging_members() const {
  std::vector<int> all;
  for (int i = 0; i < members(); ++i) {
    if (peers_[i].in_view && peers_[i].applied < applied_) all.push_back(i);
  }
  return all;
}

std::size_t Replica::view_size() const { return std::ranges::count_if(peers_, &Peer::in_view); }

void Replica::refuse(int to, const std::string& why) {
  send_(to, {.kind = ReplicaMessage::Kind::kRefused, .epoch = epoch_, .number = applied_, .why = why});
}

void Replica::receive(int from, const ReplicaMessage& message) {
  switch (message.kind) {
    case ReplicaMessage::Kind::kInstall:
      return install(from, message);
    case ReplicaMessage::Kind::kApply:
      return apply(from, message);
    case ReplicaMessage::Kind::kApplied:
      if (role_ != Role::kLeader || message.epoch != epoch_) return;
      peers_[from].applied = std::max(peers_[from].applied, message.number);
      return release_replies();
    case ReplicaMessage::Kind::kRefused:
      if (role_ != Role::kLeader) return;
      if (message.epoch > epoch_) return become_blank(message.epoch);
      return remove_from_view(from);
  }
  throw ConnectionError("a member of a chain sent an unknown message");
}

void Replica::install(int from, const ReplicaMessage& message) {
  if (message.epoch < epoch_) return refuse(from, "it has seen a later leader");
  if (role_ == Role::kFollower && message.epoch == epoch_ && message.start != start_) {
    // The first member was restarted, knows nothing and began again in epoch 0, which is also the epoch of its former
    // life.
    ReplicaMessage reply{.kind = ReplicaMessage::Kind::kRefused,
                         .epoch = epoch_ + 1,
                         .why = "its leader was restarted without its state"};
    return send_(from, std::move(reply));
  }
  become_blank(message.epoch);
  try {
    host_->load(message.state);
  } catch (const std::exception& error) {
    become_blank(message.epoch);
    return refuse(from, error.what());
  }
  role_ = Role::kFollower;
  leader_ = from;
  start_ = message.start;
  applied_ = message.number;
  send_(from, {.kind = ReplicaMessage::Kind::kApplied, .epoch = epoch_, .number = applied_});
}

void Replica::apply(int from, const ReplicaMessage& message) {
  if (message.epoch < epoch_) return refuse(from, "it has seen a later leader");
  if (role_ != Role::kFollower || message.epoch != epoch_ || from != leader_ || message.number != applied_ + 1) {
    become_blank(epoch_);
    return refuse(from, "a request arrived out of order");
  }
  ++applied_;
  const bool refused = execute(message.client, message.request, [](const Message&, const at::Tensor&) {});
  if (refused != message.refused) {
    become_blank(epoch_);
    return refuse(from, refused ? "it refused a request that its leader carried out; is its memory limit lower?"
                                : "it carried out a request that its leader refused");
  }
  send_(from, {.kind = ReplicaMessage::Kind::kApplied, .epoch = epoch_, .number = applied_});
}

}  // namespace phalanx::ps
