// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/server/server_loop.h"

#include <ATen/core/grad_mode.h>
#include <sys/epoll.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <stdexcept>

#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"

namespace phalanx::ps {
namespace {

constexpr Seconds kReturn(5);  // time for a client of a chain to connect, in addition to waiting for the leader
constexpr std::size_t kMaxQueued =
    256 << 20;  // bytes of replies that a client has not received; above this, its requests are not read

std::string describe(const Session& session) {
  if (session.leader) return "member " + std::to_string(*session.leader) + " of a chain";
  if (!session.client) return "an unknown client";
  return "client " + std::to_string(session.client->number) + " of job \"" + session.client->job + "\"";
}

// Returns the options. Throws std::invalid_argument if the secret is too short.
const ServerOptions& checked(const ServerOptions& options) {
  if (options.secret.size() < kMinSecretBytes) {
    throw std::invalid_argument("a parameter server's secret needs at least " + std::to_string(kMinSecretBytes) +
                                " bytes");
  }
  return options;
}

}  // namespace

std::uint64_t leading_number(const std::string& hexadecimal) {
  std::uint64_t number = 0;
  std::from_chars(hexadecimal.data(), hexadecimal.data() + std::min<std::size_t>(hexadecimal.size(), 16), number, 16);
  return number;
}

Server::Loop::Loop(const ServerOptions& options)
    : options_(checked(options)),
      host_(options.limits),
      checkpoints_(options.checkpoint.folder.empty()
                       ? nullptr
                       : std::make_unique<ScheduledCheckpoints>(options.checkpoint, host_)),
      listeners_(options.listen, poll_),
      handshakes_(options.admission.greeting) {
  for (const auto& client : host_.known_clients()) lost_clients_[{nullptr, client}] = after(options.grace);
}

Clock::time_point Server::Loop::next_due() const {
  auto due = std::min(handshakes_.due(), listeners_.resumes_at());
  if (checkpoints_) due = std::min(due, checkpoints_->next());
  for (const auto& [client, until] : lost_clients_) due = std::min(due, until);
  return due;
}

void Server::Loop::run() {
  const at::NoGradGuard no_grad;
  while (true) {
    const auto events = poll_.wait(next_due());
    if (poll_.stopped()) return;
    for (const auto& event : events) serve(event.data.fd, event.events);
    run_timers();
    update_chains();
  }
}

void Server::Loop::serve(int socket, std::uint32_t events) {
  if (const auto found = sessions_.find(socket); found != sessions_.end()) {
    const SessionPtr session = found->second;  // keeps the session alive if its connection ends
    return serve(session, events);
  }
  const auto serves = [&](const auto& one) { return one.second.chain->serve(socket); };
  if (std::ranges::none_of(chains_, serves) && listeners_.has(socket)) accept_all(socket);
}

void Server::Loop::run_timers() {
  if (checkpoints_) checkpoints_->write_if_due();
  expire_handshakes();
  expire_lost_clients();
}

void Server::Loop::expire_lost_clients() {
  if (lost_clients_.empty()) return;
  const auto now = Clock::now();
  for (auto next = lost_clients_.begin(); next != lost_clients_.end();) {
    const auto one = next++;
    const auto [chain, client] = one->first;
    const bool lost = lost_numbers_.contains(client.number);
    if (one->second > now && !lost) continue;
    log_info() << "parameter server: client " << client.number << " of job \"" << client.job
               << "\" has not come back: other clients no longer wait for it";
    apply_event(lost ? Verb::kLeave : Verb::kStopWaiting, chain, client);
    lost_clients_.erase(one);
  }
}

// Applies an event that does not come from a request to the shards.
void Server::Loop::apply_event(Verb event, const std::shared_ptr<Chain>& chain, const ClientId& client) {
  if (chain) {
    if (chain->leads())
      chain->replica().submit(client, {.header = {.verb = event}}, [](const Message&, const auto&) {});
  } else if (event == Verb::kForgetReads) {
    host_.forget_reads(client);
  } else if (event == Verb::kLeave) {
    host_.leave(client);
  } else {
    host_.stop_waiting_for(client);
  }
}

// Handles changes of leadership. If this server no longer leads a chain, its clients must find the new leader. If it
// has become the leader, the clients must find this server: others wait for them as for clients whose connection broke.
void Server::Loop::update_chains() {
  for (auto& [key, membership] : chains_) {
    const auto& chain = membership.chain;
    chain->maintain_connections();
    const bool was_leader = chain->leads();
    if (membership.was_leader == was_leader) continue;
    membership.was_leader = was_leader;
    log_warning() << "parameter server: " << (was_leader ? "leads" : "no longer leads") << " the chain " << key;
    std::vector<SessionPtr> clients;
    for (const auto& [socket, session] : sessions_) {
      if (session->chain == chain && session->client) clients.push_back(session);
    }
    if (was_leader) {
      for (const auto& client : chain->replica().host().known_clients()) {
        const auto is_here = [&](const SessionPtr& session) { return session->client == client; };
        if (std::ranges::any_of(clients, is_here)) continue;
        const bool lost = lost_numbers_.contains(client.number);
        lost_clients_[{chain, client}] = lost ? Clock::now() : after(grace_of(chain.get()));
      }
    } else {
      for (const auto& session : clients) end(session, "this server does not lead the chain any more");
      std::erase_if(lost_clients_, [&](const auto& one) { return one.first.first == chain; });
    }
  }
}

// Called after the thread has ended.
void Server::Loop::write_last_checkpoint() {
  if (checkpoints_) checkpoints_->finish();
}

void Server::Loop::serve(const SessionPtr& session, std::uint32_t events) {
  try {
    if ((events & EPOLLOUT) != 0) session->channel.flush();
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
      while (auto message = session->channel.receive()) {
        if (session->leader) {
          session->chain->receive(*session->leader, *std::move(message));
        } else if (session->client) {
          handle(session, *std::move(message));
        } else {
          greet(session, *message);
        }
        if (session->channel.queued_bytes() > kMaxQueued) break;
      }
    }
    const bool full = session->channel.queued_bytes() > kMaxQueued;
    const std::uint32_t wanted = (full ? 0U : EPOLLIN) | (session->channel.has_output() ? EPOLLOUT : 0U);
    poll_.change(session->channel.socket(), wanted);
  } catch (const std::exception& error) {
    end(session, error.what());
  }
}

void Server::Loop::end(const SessionPtr& session, const std::string& why) {
  if (sessions_.erase(session->channel.socket()) == 0) return;
  poll_.remove(session->channel.socket());
  finish_handshake(session);
  if (const auto more = session->is_handshaking() ? handshakes_.pass_log_line(why) : std::string()) {
    log_info() << "parameter server: the connection of " << describe(*session) << " ended: " << why << *more;
  }
  if (!session->client) return;
  const bool another = std::ranges::any_of(sessions_, [&](const auto& one) {
    const auto& client = one.second->client;
    return client && one.second->chain == session->chain && client->job == session->client->job &&
           client->number == session->client->number;
  });
  presence_.depart(session->client->job, session->left);
  if (another) return;  // a newer incarnation is connected
  if (is_presence(session->client->job)) {
    if (!session->left) lose_process(session->client->job, session->client->number);
    return;
  }
  apply_event(Verb::kForgetReads, session->chain, *session->client);
  const Seconds grace = grace_of(session->chain.get());
  if (!session->left && lost_numbers_.contains(session->client->number)) {
    apply_event(Verb::kLeave, session->chain, *session->client);
  } else if (!session->left && grace > Seconds(0)) {
    lost_clients_[{session->chain, *session->client}] = after(grace);
  } else if (!session->left) {
    apply_event(Verb::kStopWaiting, session->chain, *session->client);
  }
}

bool Server::Loop::is_presence(const std::string& job) const {
  return !options_.presences.empty() && job.starts_with(options_.presences);
}

// A client of the process that is still connected has sent requests that are not carried out yet. It is forgotten when
// its connection ends.
void Server::Loop::lose_process(const std::string& job, int number) {
  log_warning() << "parameter server: the process of the clients with number " << number << " is lost";
  lost_numbers_.insert(number);
  forget_clients(host_, nullptr, number);
  for (auto& [key, membership] : chains_) {
    if (membership.chain->leads()) forget_clients(membership.chain->replica().host(), membership.chain, number);
  }
  std::vector<SessionPtr> others;
  for (const auto& [socket, session] : sessions_) {
    if (session->client && session->client->job == job) others.push_back(session);
  }
  for (const auto& session : others) {
    session->left = true;  // this process is not lost
    end(session, "another process of its job is lost");
  }
}

void Server::Loop::forget_clients(ShardHost& host, const std::shared_ptr<Chain>& chain, int number) {
  for (const auto& client : host.known_clients()) {
    const auto is_here = [&](const auto& one) { return one.second->chain == chain && one.second->client == client; };
    if (client.number != number || std::ranges::any_of(sessions_, is_here)) continue;
    apply_event(Verb::kLeave, chain, client);
    lost_clients_.erase({chain, client});
  }
}

// A client of a chain may first have to find out which server leads it.
Seconds Server::Loop::grace_of(const Chain* chain) const {
  return chain == nullptr ? options_.grace : std::max(options_.grace, 2 * chain->options().failover + kReturn);
}

// Sends a reply. The client may be another one than the one being served: its pull had to wait.
void Server::Loop::answer(const SessionPtr& session, Message reply) {
  if (!sessions_.contains(session->channel.socket())) return;
  const bool was_idle = !session->channel.has_output();
  session->channel.send(std::move(reply));
  if (was_idle && session->channel.has_output()) poll_.change(session->channel.socket(), EPOLLIN | EPOLLOUT);
}

}  // namespace phalanx::ps
