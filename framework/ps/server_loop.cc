// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/server_loop.h"

#include <ATen/core/grad_mode.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"

namespace phalanx::ps {
namespace {

constexpr std::chrono::microseconds kSpin(50);  // time to poll for the next request before sleeping
constexpr Seconds kReturn(5);  // time for a client of a chain to connect, in addition to waiting for the leader
constexpr std::size_t kMostQueued =
    256 << 20;  // bytes of replies that a client has not received; above this, its requests are not read

// Returns the timeout for epoll_wait until `due`, or -1 for no timeout.
int milliseconds_to(Clock::time_point due) {
  if (due == Clock::time_point::max()) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
}

std::string describe(const Session& session) {
  if (session.leader) return "member " + std::to_string(*session.leader) + " of a chain";
  if (!session.client) return "an unknown client";
  return "client " + std::to_string(session.client->number) + " of job \"" + session.client->job + "\"";
}

}  // namespace

std::uint64_t leading_number(const std::string& hexadecimal) {
  std::uint64_t number = 0;
  std::from_chars(hexadecimal.data(), hexadecimal.data() + std::min<std::size_t>(hexadecimal.size(), 16), number, 16);
  return number;
}

Server::Loop::Loop(const ServerOptions& options)
    : options_(options),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      host_(options.limits) {
  if (options.secret.size() < kLeastSecret) {
    throw std::invalid_argument("a parameter server's secret needs at least " + std::to_string(kLeastSecret) +
                                " bytes");
  }
  if (!wake_.valid() || !news_.valid() || !epoll_.valid())
    throw Error(std::string("cannot start a server: ") + std::strerror(errno));
  watch(wake_.get(), EPOLLIN, EPOLL_CTL_ADD);
  watch(news_.get(), EPOLLIN, EPOLL_CTL_ADD);
  if (!options.checkpoint.folder.empty()) {
    checkpoints_ = std::make_unique<ScheduledCheckpoints>(options.checkpoint, host_);
    for (const auto& client : host_.known_clients()) away_[{nullptr, client}] = after(options.grace);
  }
  for (const auto& address : options.listen) {
    listeners_.push_back(listen_at(address));
    addresses_.push_back(address_of(listeners_.back().get()));
    watch(listeners_.back().get(), EPOLLIN, EPOLL_CTL_ADD);
  }
}

void Server::Loop::watch(int socket, std::uint32_t events, int how) {
  epoll_event event{.events = events, .data = {.fd = socket}};
  if (::epoll_ctl(epoll_.get(), how, socket, &event) != 0) {
    throw Error(std::string("cannot watch a connection: ") + std::strerror(errno));
  }
}

// Polls for a while before it sleeps, because waking up takes longer than a small request.
int Server::Loop::wait_for_events(std::array<epoll_event, 64>& events) const {
  const auto end = Clock::now() + kSpin;
  auto due = checkpoints_ ? checkpoints_->next() : Clock::time_point::max();
  for (const auto& [client, until] : away_) due = std::min(due, until);
  if (!strangers_.empty()) due = std::min(due, greeting_due(*strangers_.front()));
  due = std::min(due, accepts_again_);
  while (true) {
    const bool spin = Clock::now() < end;
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), spin ? 0 : milliseconds_to(due));
    if (count > 0 || (count == 0 && !spin)) return count;
    if (count < 0 && errno != EINTR) throw Error(std::string("epoll_wait: ") + std::strerror(errno));
    ::sched_yield();
  }
}

void Server::Loop::run() {
  const at::NoGradGuard no_grad;
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count = wait_for_events(events);
    for (int i = 0; i < count; ++i) {
      const int socket = events[i].data.fd;
      if (socket == wake_.get()) return;
      if (socket == news_.get()) {
        std::uint64_t count = 0;
        (void)!::read(news_.get(), &count, sizeof(count));
      } else if (const auto found = sessions_.find(socket); found != sessions_.end()) {
        const SessionPtr session = found->second;  // keeps the session alive if its connection ends
        serve(session, events[i].events);
      } else if (std::ranges::none_of(chains_, [&](const auto& one) { return one.second->serve(socket); }) &&
                 std::ranges::any_of(listeners_, [&](const auto& one) { return one.get() == socket; })) {
        accept_all(socket);
      }
    }
    do_what_is_due();
    tend_chains();
  }
}

void Server::Loop::do_what_is_due() {
  if (checkpoints_) checkpoints_->tend();
  tend_strangers();
  tend_away();
}

void Server::Loop::tend_away() {
  if (away_.empty()) return;
  const auto now = Clock::now();
  for (auto next = away_.begin(); next != away_.end();) {
    const auto one = next++;
    if (one->second > now) continue;
    const auto [chain, client] = one->first;
    log_info() << "parameter server: client " << client.number << " of job \"" << client.job
               << "\" has not come back: other clients no longer wait for it";
    happens(Verb::kStopWaiting, chain, client);
    away_.erase(one);
  }
}

// Applies an event that does not come from a request to the shards.
void Server::Loop::happens(Verb event, const std::shared_ptr<Chain>& chain, const ClientId& client) {
  if (chain) {
    if (chain->leads())
      chain->replica().submit(client, {.header = {.verb = event}}, [](const Message&, const auto&) {});
  } else if (event == Verb::kForgetReads) {
    host_.forget_reads(client);
  } else {
    host_.stop_waiting_for(client);
  }
}

// Handles changes of leadership. If this server no longer leads a chain, its clients must find the new leader. If it
// has become the leader, the clients must find this server: others wait for them as for clients whose connection broke.
void Server::Loop::tend_chains() {
  for (const auto& [key, chain] : chains_) {
    chain->tend();
    bool& led = led_[chain.get()];
    if (led == chain->leads()) continue;
    led = chain->leads();
    log_warning() << "parameter server: " << (led ? "leads" : "no longer leads") << " the chain " << key;
    std::vector<SessionPtr> clients;
    for (const auto& [socket, session] : sessions_) {
      if (session->chain == chain && session->client) clients.push_back(session);
    }
    if (led) {
      for (const auto& client : chain->replica().host().known_clients()) {
        const auto is_here = [&](const SessionPtr& session) { return session->client == client; };
        if (std::ranges::none_of(clients, is_here)) away_[{chain, client}] = after(grace_of(chain.get()));
      }
    } else {
      for (const auto& session : clients) end(session, "this server does not lead the chain any more");
      std::erase_if(away_, [&](const auto& one) { return one.first.first == chain; });
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
        if (session->channel.queued_bytes() > kMostQueued) break;
      }
    }
    const bool full = session->channel.queued_bytes() > kMostQueued;
    const std::uint32_t wanted = (full ? 0U : EPOLLIN) | (session->channel.has_output() ? EPOLLOUT : 0U);
    watch(session->channel.socket(), wanted, EPOLL_CTL_MOD);
  } catch (const std::exception& error) {
    end(session, error.what());
  }
}

void Server::Loop::end(const SessionPtr& session, const std::string& why) {
  if (sessions_.erase(session->channel.socket()) == 0) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, session->channel.socket(), nullptr);
  no_longer_stranger(session);
  // Anyone could fill the log with lines about strangers.
  if (const auto more = session->is_stranger() ? log_strangers_.pass() : std::string()) {
    log_info() << "parameter server: the connection of " << describe(*session) << " ended: " << why << *more;
  }
  if (!session->client) return;
  const bool another = std::ranges::any_of(sessions_, [&](const auto& one) {
    const auto& client = one.second->client;
    return client && one.second->chain == session->chain && client->job == session->client->job &&
           client->number == session->client->number;
  });
  presence_.add(session->client->job, -1);
  if (another) return;  // a newer incarnation is connected
  happens(Verb::kForgetReads, session->chain, *session->client);
  const Seconds grace = grace_of(session->chain.get());
  if (!session->left && grace > Seconds(0)) {
    away_[{session->chain, *session->client}] = after(grace);
  } else if (!session->left) {
    happens(Verb::kStopWaiting, session->chain, *session->client);
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
  if (was_idle && session->channel.has_output()) watch(session->channel.socket(), EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
}

}  // namespace phalanx::ps
