// SPDX-License-Identifier: Apache-2.0
// Admits clients that know the secret, and other members of chains.
#include <sys/epoll.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "framework/base/authentication.h"
#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/text.h"
#include "framework/ps/server/server_loop.h"

namespace phalanx::ps {
namespace {

constexpr std::size_t kLongestChain = 2;  // members of a chain

}  // namespace

// Ends former connections of the peer. A connection that still seems to be open belongs to a peer that has noticed
// before us that it is broken. Nothing can arrive from older incarnations any more.
void Server::Loop::end_former_connections(const Session& newcomer) {
  std::vector<SessionPtr> old;
  for (const auto& [socket, session] : sessions_) {
    if (session.get() == &newcomer || session->chain != newcomer.chain || session->leader != newcomer.leader) continue;
    if (session->client == newcomer.client && (session->client || session->leader)) old.push_back(session);
  }
  for (const auto& session : old) end(session, "it has connected again");
  std::erase_if(lost_clients_, [&](const auto& one) {
    const auto& [chain, client] = one.first;
    return newcomer.client && chain == newcomer.chain && client.job == newcomer.client->job &&
           client.number == newcomer.client->number;
  });
}

void Server::Loop::greet(const SessionPtr& session, const Message& message) {
  if (message.header.verb != Verb::kHello) throw ConnectionError("a client did not identify itself");
  Message reply{.header = {.verb = Verb::kHello, .status = Status::kDone, .id = message.header.id}};
  if (session->client_nonce.empty()) {
    if (message.text.size() != kProofBytes) throw ConnectionError("a client did not begin with a nonce");
    session->client_nonce = message.text;
    reply.text = session->nonce;
  } else {
    admit(session, message, reply);
  }
  session->channel.send(std::move(reply));
}

// Checks the proof before decoding the greeting.
void Server::Loop::admit(const SessionPtr& session, const Message& message, Message& reply) {
  if (std::exchange(session->has_tried, true)) throw ConnectionError("a client that was refused sent another request");
  const std::string identity = message.text.substr(std::min(kProofBytes, message.text.size()));
  const auto proof_of = [&](Role role) {
    return proof(options_.secret, role, session->client_nonce, session->nonce, identity);
  };
  if (!equal_hashes(message.text.substr(0, kProofBytes), proof_of(Role::kClient))) {
    throw ConnectionError("it does not know the secret");
  }
  try {
    accept_greeting(session, decode_greeting(identity));
  } catch (const ConnectionError&) {
    throw;
  } catch (const Error& error) {
    reply.header.status = Status::kRefused;
    reply.text = error.what();
    return;
  }
  session->channel.limit_text(kMaxText);
  finish_handshake(session);
  reply.text = proof_of(Role::kServer);
  reply.header.version = session->memory ? 1 : 0;
  reply.header.clock = static_cast<std::int64_t>(session->chain ? session->chain->replica().start() : start_);
}

// Throws Error if this server does not do what the greeting asks for.
void Server::Loop::accept_greeting(const SessionPtr& session, const Greeting& greeting) {
  if (is_presence(greeting.job) && presence_.of(greeting.job).lost > 0) {
    throw Error("another process of its job is lost");
  }
  if (!greeting.chain.empty()) join_chain(*session, greeting);
  if (!session->leader) {
    session->client = ClientId{.job = greeting.job,
                               .number = static_cast<int>(greeting.client),
                               .incarnation = leading_number(greeting.incarnation)};
    session->memory = PeerMemory::behind(session->channel.socket(), static_cast<std::uint64_t>(greeting.memory),
                                         greeting.memory_check);
    presence_.arrive(greeting.job);
    if (is_presence(greeting.job)) lost_numbers_.erase(session->client->number);
  }
  end_former_connections(*session);
}

void Server::Loop::join_chain(Session& session, const Greeting& greeting) {
  const auto members = static_cast<std::int64_t>(greeting.chain.size());
  if (greeting.member >= members || members > static_cast<std::int64_t>(kLongestChain)) {
    throw Error("there is no member " + std::to_string(greeting.member) + " of a chain of " + std::to_string(members));
  }
  if (checkpoints_) {
    throw Error("a server with checkpoints cannot hold parts that have replicas; start it without --checkpoint");
  }
  auto chain = chain_of(greeting);
  if (greeting.replica) {
    if (greeting.client < 0 || greeting.client >= members || greeting.client == greeting.member) {
      throw Error("member " + std::to_string(greeting.client) + " of a chain cannot lead it");
    }
    session.leader = static_cast<int>(greeting.client);
  } else if (!chain->leads() && !chain->replica().begin() && !(greeting.take_over && chain->replica().take_over())) {
    throw Error(chain->replica().role() == Replica::Role::kBlank ? "it has no copy of the requested values"
                                                                 : "another server leads");
  }
  session.chain = std::move(chain);
}

std::shared_ptr<Chain> Server::Loop::chain_of(const Greeting& greeting) {
  const std::string key = join(greeting.chain, " | ");
  auto& chain = chains_[key].chain;
  if (chain) {
    if (chain->options().member != greeting.member) throw Error("it is not the member that the greeting names");
    return chain;
  }
  auto self = std::make_shared<Chain*>(nullptr);
  chain = std::make_shared<Chain>(Chain::Options{
      .members = greeting.chain,
      .member = static_cast<int>(greeting.member),
      .secret = options_.secret,
      .limits = options_.limits,
      .start = leading_number(random_text()),
      .failover = Seconds(greeting.failover),
      .wake = [this] { poll_.interrupt(); },
      .watch =
          [this](int socket, bool added, bool writes) {
            const std::uint32_t events = EPOLLIN | (writes ? EPOLLOUT : 0U);
            added ? poll_.add(socket, events) : poll_.change(socket, events);
          },
      .to_leader = [this, self](int member, Message reply) { send_to_leader(*self, member, std::move(reply)); }});
  *self = chain.get();
  return chain;
}

void Server::Loop::send_to_leader(const Chain* chain, int member, Message reply) {
  for (const auto& [socket, session] : sessions_) {
    if (session->chain.get() == chain && session->leader == member) return answer(session, std::move(reply));
  }
}

}  // namespace phalanx::ps
