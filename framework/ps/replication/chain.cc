// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/replication/chain.h"

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/ps/protocol/handshake.h"
#include "framework/ps/replication/replica_message.h"

namespace phalanx::ps {
namespace {

constexpr Seconds kAttempt(2);  // time limit for an attempt to connect to another member
constexpr std::chrono::milliseconds kBetweenAttempts(100);

bool says_something_to_leader(ReplicaMessage::Kind kind) {
  return kind == ReplicaMessage::Kind::kApplied || kind == ReplicaMessage::Kind::kRefused;
}

}  // namespace

Chain::Chain(Options options)
    : options_(std::move(options)),
      peers_(options_.members.size()),
      replica_(options_.member, static_cast<int>(options_.members.size()), options_.limits, options_.start,
               [this](int member, ReplicaMessage message) { send(member, std::move(message)); }) {}

Chain::~Chain() {
  for (auto& peer : peers_) peer.connecting = {};
}

void Chain::send(int member, ReplicaMessage message) {
  if (says_something_to_leader(message.kind)) return options_.to_leader(member, encoded(message));
  Peer& peer = peers_[member];
  if (!peer.channel || peer.broken) return;
  try {
    peer.channel->send(encoded(message));
  } catch (const ConnectionError&) {
    peer.broken = true;
  }
}

// Runs in its own thread until there is a connection.
void Chain::connect(int member, const std::stop_token& stop) {
  std::vector<std::string> addresses;
  std::istringstream list(options_.members[member]);
  for (std::string one; std::getline(list, one, ',');) addresses.push_back(one);
  const Greeting greeting{.job = "chain",
                          .client = options_.member,
                          .incarnation = "0",
                          .chain = options_.members,
                          .member = member,
                          .replica = true,
                          .failover = options_.failover.count()};
  const auto tell = [&](std::unique_ptr<Channel> channel) {
    {
      const std::lock_guard lock(mutex_);
      connect_results_.push_back({member, std::move(channel)});
    }
    options_.wake();
  };
  bool logged = false;
  const std::atomic<bool> never = false;
  while (!stop.stop_requested()) {
    bool refused = true;
    for (const auto& address : addresses) {
      try {
        const auto room = [this](const Message& begun) {
          return room_for_replica(begun, options_.limits.memory_bytes);
        };
        auto greeted = greet_server(address, greeting, options_.secret, room, after(kAttempt), never);
        return tell(std::move(greeted.channel));
      } catch (const ConnectionRefused&) {
      } catch (const std::exception& error) {
        refused = false;
        if (!std::exchange(logged, true)) {
          log_warning() << "parameter server: another member of a chain cannot be reached: " << error.what();
        }
      }
    }
    if (refused) tell(nullptr);
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

void Chain::take_connect_results() {
  std::vector<ConnectResult> news;
  {
    const std::lock_guard lock(mutex_);
    news.swap(connect_results_);
  }
  for (auto& one : news) {
    Peer& peer = peers_[one.member];
    if (one.channel) peer.is_connecting = false;
    if (!leads()) continue;
    if (!one.channel) {
      if (!replica_.is_in_view(one.member)) continue;
      log_warning() << "parameter server: " << options_.members[one.member]
                    << " has ended: the chain continues without it";
      replica_.ended(one.member);
      continue;
    }
    peer.channel = std::move(one.channel);
    peer.broken = peer.writes = false;
    log_info() << "parameter server: " << options_.members[one.member] << " becomes a copy";
    options_.watch(peer.channel->socket(), true, false);
    replica_.connected(one.member);
  }
}

void Chain::drop(int member) {
  Peer& peer = peers_[member];
  peer.channel.reset();  // epoll forgets a socket that is closed
  peer.broken = false;
  replica_.disconnected(member);
}

void Chain::receive(int from, Message message) { replica_.receive(from, decoded(std::move(message))); }

bool Chain::serve(int socket) {
  for (int member = 0; member < replica_.members(); ++member) {
    Peer& peer = peers_[member];
    if (!peer.channel || peer.channel->socket() != socket) continue;
    try {
      peer.channel->flush();
      while (auto received = peer.channel->receive()) {
        const ReplicaMessage message = decoded(*std::move(received));
        if (message.kind == ReplicaMessage::Kind::kRefused) {
          log_warning() << "parameter server: " << options_.members[member] << " is not a copy: " << message.why;
        }
        replica_.receive(member, message);
        if (!leads()) break;
      }
    } catch (const ConnectionError& error) {
      log_warning() << "parameter server: the connection to " << options_.members[member] << " ended: " << error.what();
      peer.broken = true;
    }
    return true;
  }
  return false;
}

void Chain::maintain_connections() {
  take_connect_results();
  for (int member = 0; member < replica_.members(); ++member) {
    Peer& peer = peers_[member];
    if (member == options_.member) continue;
    if (peer.channel && (peer.broken || !leads())) drop(member);
    if (peer.channel && peer.channel->has_output() != peer.writes) {
      peer.writes = !peer.writes;
      options_.watch(peer.channel->socket(), false, peer.writes);
    }
    if (peer.channel || !leads() || peer.is_connecting) continue;
    peer.is_connecting = true;
    const BlockedSignals blocked;  // signals go to the threads that expect them
    peer.connecting = std::jthread([this, member](const std::stop_token& stop) { connect(member, stop); });
  }
}

std::size_t Chain::queued_bytes() const {
  std::size_t most = 0;
  for (const auto& peer : peers_) most = std::max(most, peer.channel ? peer.channel->queued_bytes() : 0);
  return most;
}

}  // namespace phalanx::ps
