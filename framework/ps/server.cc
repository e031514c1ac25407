#include "framework/ps/server.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/base/text.h"
#include "framework/ps/authentication.h"
#include "framework/ps/chain.h"
#include "framework/ps/deadline.h"
#include "framework/ps/greeting.h"
#include "framework/ps/presence.h"
#include "framework/ps/replica_message.h"
#include "framework/ps/scheduled_checkpoints.h"
#include "framework/ps/session.h"

namespace phalanx::ps {
namespace {

constexpr std::chrono::microseconds kSpin(50);  // for the next request, before the thread sleeps
constexpr Seconds kReturn(5);  // in which a client of a chain connects, beside the time that it waits for the leader
constexpr std::size_t kMostMembers = 2;  // of a chain
constexpr std::size_t kMostQueued =
    256 << 20;  // bytes of replies that a client has not taken, before it is not read from

// For epoll_wait: as long as to `due`, or -1 for ever.
int milliseconds_to(Clock::time_point due) {
  if (due == Clock::time_point::max()) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
}

// What the first 16 digits say.
std::uint64_t number_of(const std::string& hexadecimal) {
  std::uint64_t number = 0;
  std::from_chars(hexadecimal.data(), hexadecimal.data() + std::min<std::size_t>(hexadecimal.size(), 16), number, 16);
  return number;
}

std::int64_t elements_sent(const Transfer& transfer) {
  return static_cast<std::int64_t>(transfer.sent / c10::elementSize(transfer.dtype));
}

at::Tensor empty_payload(const Transfer& transfer) {
  return at::empty({elements_sent(transfer)}, at::dtype(transfer.dtype));
}

// What is wrong with the payload that a request announces; empty: nothing.
std::string mismatch(const Header& request, const Transfer& transfer) {
  if (request.payload_bytes == transfer.sent && request.dtype == static_cast<std::uint8_t>(transfer.dtype)) return {};
  return "the request has " + std::to_string(request.payload_bytes) + " bytes where " + std::to_string(transfer.sent) +
         " of " + c10::toString(transfer.dtype) + " are expected";
}

std::string describe(const Session& session) {
  if (session.leader) return "member " + std::to_string(*session.leader) + " of a chain";
  if (!session.client) return "an unknown client";
  return "client " + std::to_string(session.client->number) + " of job \"" + session.client->job + "\"";
}

}  // namespace

class Server::Loop {
 public:
  explicit Loop(const ServerOptions& options);

  void run();
  void stop() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof(one));  // a counter of 0 has room for one more
  }
  const std::vector<std::string>& addresses() const { return addresses_; }
  void write_last_checkpoint();

  Presence& presence() { return presence_; }

 private:
  using SessionPtr = std::shared_ptr<Session>;

  void watch(int socket, std::uint32_t events, int how);
  int wait_for_events(std::array<epoll_event, 64>& events) const;
  void do_what_is_due();
  void tend_chains();
  void accept_all(int listener);
  void serve(const SessionPtr& session, std::uint32_t events);
  void end(const SessionPtr& session, const std::string& why);
  Seconds grace_of(const Chain* chain) const;
  void answer(const SessionPtr& session, Message reply);

  void greet(const SessionPtr& session, const Message& message);
  void take_in(const SessionPtr& session, const Greeting& greeting);
  void join_chain(Session& session, const Greeting& greeting);
  std::shared_ptr<Chain> chain_of(const Greeting& greeting);
  void welcome(const Session& session);
  void handle(const SessionPtr& session, Message request);
  ShardHost& host_of(const Session& session) { return session.chain ? session.chain->replica().host() : host_; }
  static Message status_of(Chain& chain, const Header& request);
  Message status_of_all(const Header& request) const;
  void happens(Verb event, const std::shared_ptr<Chain>& chain, const ClientId& client);
  void send_to_leader(const Chain* chain, int member, Message reply);
  at::Tensor make_room(Session& session, const Message& begun);
  void refuse_if_in_use(const Session& session) const;
  void fetch_payload(Session& session, Message& request);
  void give_values(const SessionPtr& session, const Header& request, Message reply, const at::Tensor& values);

  ServerOptions options_;
  std::vector<Descriptor> listeners_;
  std::vector<std::string> addresses_;
  Descriptor wake_, news_, epoll_;  // news_: of what a chain's threads have done
  ShardHost host_;
  std::map<int, SessionPtr> sessions_;                    // by socket
  std::map<std::string, std::shared_ptr<Chain>> chains_;  // by their members
  std::map<const Chain*, bool> led_;                      // as it was when chains were tended last
  using Away = std::pair<std::shared_ptr<Chain>, ClientId>;
  std::map<Away, Clock::time_point> away_;          // whose connection has broken: until when others wait for them
  std::uint64_t start_ = number_of(random_text());  // of this start of the server
  std::unique_ptr<ScheduledCheckpoints> checkpoints_;
  Presence presence_;
};

Server::Loop::Loop(const ServerOptions& options)
    : options_(options),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      host_(options.limits) {
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

// Looks for a while before it sleeps: waking up takes longer than a small request does.
int Server::Loop::wait_for_events(std::array<epoll_event, 64>& events) const {
  const auto end = Clock::now() + kSpin;
  auto due = checkpoints_ ? checkpoints_->next() : Clock::time_point::max();
  for (const auto& [client, until] : away_) due = std::min(due, until);
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
        const SessionPtr session = found->second;  // lives to the end of this, even where that is the connection's
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
  if (away_.empty()) return;
  const auto now = Clock::now();
  for (auto next = away_.begin(); next != away_.end();) {
    const auto one = next++;
    if (one->second > now) continue;
    const auto [chain, client] = one->first;
    log_info() << "parameter server: client " << client.number << " of job \"" << client.job
               << "\" has not come back: nobody waits for it any more";
    happens(Verb::kStopWaiting, chain, client);
    away_.erase(one);
  }
}

// Something that happens to the shards without a request.
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

// Clients of a chain that this server does not lead any more have to find its leader. Of a chain that it has come to
// lead, the clients have to find this server: others wait for them as for those whose connection has broken.
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

// When the thread has ended.
void Server::Loop::write_last_checkpoint() {
  if (checkpoints_) checkpoints_->finish();
}

void Server::Loop::accept_all(int listener) {
  while (true) {
    Descriptor socket = accept_from(listener);
    if (!socket.valid()) {
      if (!not_ready()) log_warning() << "parameter server: cannot accept a connection: " << std::strerror(errno);
      return;
    }
    const int file = socket.get();
    auto session = std::make_shared<Session>(std::move(socket));
    session->make_room = [this, session = session.get()](const Message& begun) { return make_room(*session, begun); };
    sessions_.emplace(file, session);
    watch(file, EPOLLIN, EPOLL_CTL_ADD);
  }
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
  log_info() << "parameter server: the connection of " << describe(*session) << " ended: " << why;
  if (!session->client) return;
  const bool another = std::ranges::any_of(sessions_, [&](const auto& one) {
    const auto& client = one.second->client;
    return client && one.second->chain == session->chain && client->job == session->client->job &&
           client->number == session->client->number;
  });
  presence_.add(session->client->job, -1);
  if (another) return;  // of a newer incarnation
  happens(Verb::kForgetReads, session->chain, *session->client);
  const Seconds grace = grace_of(session->chain.get());
  if (!session->left && grace > Seconds(0)) {
    away_[{session->chain, *session->client}] = after(grace);
  } else if (!session->left) {
    happens(Verb::kStopWaiting, session->chain, *session->client);
  }
}

// A client of a chain may have to find out first who leads it.
Seconds Server::Loop::grace_of(const Chain* chain) const {
  return chain == nullptr ? options_.grace : std::max(options_.grace, 2 * chain->options().failover + kReturn);
}

// One that is still connected, as it seems, has found out before us that its connection is broken. Of older
// incarnations, nothing can come any more.
void Server::Loop::welcome(const Session& newcomer) {
  std::vector<SessionPtr> old;
  for (const auto& [socket, session] : sessions_) {
    if (session.get() == &newcomer || session->chain != newcomer.chain || session->leader != newcomer.leader) continue;
    if (session->client == newcomer.client && (session->client || session->leader)) old.push_back(session);
  }
  for (const auto& session : old) end(session, "it has connected again");
  std::erase_if(away_, [&](const auto& one) {
    const auto& [chain, client] = one.first;
    return newcomer.client && chain == newcomer.chain && client.job == newcomer.client->job &&
           client.number == newcomer.client->number;
  });
}

// To a client other than the one that is being served, too, whose pull had to wait.
void Server::Loop::answer(const SessionPtr& session, Message reply) {
  if (!sessions_.contains(session->channel.socket())) return;
  const bool was_idle = !session->channel.has_output();
  session->channel.send(std::move(reply));
  if (was_idle && session->channel.has_output()) watch(session->channel.socket(), EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
}

void Server::Loop::greet(const SessionPtr& session, const Message& message) {
  if (message.header.verb != Verb::kHello) throw ConnectionError("a client did not say who it is");
  Greeting greeting;
  config::load_text(greeting, message.text, "greeting");
  Message reply{.header = {.verb = Verb::kHello, .status = Status::kDone, .id = message.header.id}};
  if (greeting.proof.empty()) {
    reply.text = session->nonce;
  } else {
    const auto proof_of = [&](Role role) {
      return proof(options_.secret, role, greeting.nonce, session->nonce, greeting.identity());
    };
    if (!equal_proofs(greeting.proof, proof_of(Role::kClient))) {
      throw ConnectionError("client " + std::to_string(greeting.client) + " of job \"" + greeting.job +
                            "\" does not know the secret");
    }
    try {
      take_in(session, greeting);
    } catch (const Error& error) {
      reply.header.status = Status::kRefused;
      reply.text = error.what();
      session->channel.send(std::move(reply));
      return;
    }
    reply.text = proof_of(Role::kServer);
    reply.header.version = session->memory ? 1 : 0;
    reply.header.clock = static_cast<std::int64_t>(session->chain ? session->chain->replica().start() : start_);
  }
  session->channel.send(std::move(reply));
}

// Throws Error where the greeting wants what this server does not do.
void Server::Loop::take_in(const SessionPtr& session, const Greeting& greeting) {
  if (!greeting.chain.empty()) join_chain(*session, greeting);
  if (!session->leader) {
    session->client = ClientId{.job = greeting.job,
                               .number = static_cast<int>(greeting.client),
                               .incarnation = number_of(greeting.incarnation)};
    session->memory = PeerMemory::behind(session->channel.socket(), static_cast<std::uint64_t>(greeting.memory),
                                         greeting.memory_check);
    presence_.add(greeting.job, 1);
  }
  welcome(*session);
}

void Server::Loop::join_chain(Session& session, const Greeting& greeting) {
  const auto members = static_cast<std::int64_t>(greeting.chain.size());
  if (greeting.member >= members || members > static_cast<std::int64_t>(kMostMembers)) {
    throw Error("there is no member " + std::to_string(greeting.member) + " of a chain of " + std::to_string(members));
  }
  if (checkpoints_) {
    throw Error("a server with checkpoints holds no parts that have replicas; start it without --checkpoint");
  }
  auto chain = chain_of(greeting);
  if (greeting.replica) {
    if (greeting.client < 0 || greeting.client >= members || greeting.client == greeting.member) {
      throw Error("member " + std::to_string(greeting.client) + " of a chain is none that may lead");
    }
    session.leader = static_cast<int>(greeting.client);
  } else if (!chain->leads() && !chain->replica().begin() && !(greeting.take_over && chain->replica().take_over())) {
    throw Error(chain->replica().role() == Replica::Role::kBlank ? "it has no copy of what is asked for"
                                                                 : "another server leads");
  }
  session.chain = std::move(chain);
}

std::shared_ptr<Chain> Server::Loop::chain_of(const Greeting& greeting) {
  const std::string key = join(greeting.chain, " | ");
  auto& chain = chains_[key];
  if (chain) {
    if (chain->options().member != greeting.member) throw Error("it is not the member that the greeting says");
    return chain;
  }
  auto self = std::make_shared<Chain*>(nullptr);
  chain = std::make_shared<Chain>(Chain::Options{
      .members = greeting.chain,
      .member = static_cast<int>(greeting.member),
      .secret = options_.secret,
      .limits = options_.limits,
      .start = number_of(random_text()),
      .failover = Seconds(greeting.failover),
      .wake =
          [this] {
            const std::uint64_t one = 1;
            (void)!::write(news_.get(), &one, sizeof(one));
          },
      .watch =
          [this](int socket, bool added, bool writes) {
            watch(socket, EPOLLIN | (writes ? EPOLLOUT : 0U), added ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
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

// Memory is only taken for what fits the table; the connection is of no more use where it does not, since what follows
// cannot be told from the next request.
at::Tensor Server::Loop::make_room(Session& session, const Message& begun) {
  if (session.leader) return room_for_replica(begun);
  if (!session.client) throw ConnectionError("a client sent values before it said who it is");
  const Transfer transfer = host_of(session).transfer(*session.client, begun.header);
  if (const auto wrong = mismatch(begun.header, transfer); !wrong.empty()) throw ConnectionError(wrong);
  return empty_payload(transfer);
}

void Server::Loop::refuse_if_in_use(const Session& session) const {
  for (const auto& [socket, other] : sessions_) {
    if (other.get() == &session || other->chain != session.chain || !other->client || other->left ||
        other->client->job != session.client->job)
      continue;
    throw Error("another client (number " + std::to_string(other->client->number) + ") uses job \"" +
                session.client->job + "\"; give one of the two another name");
  }
}

void Server::Loop::fetch_payload(Session& session, Message& request) {
  const Header& header = request.header;
  if (!session.memory) throw Error("this server cannot reach the client's memory");
  const Transfer transfer = host_of(session).transfer(*session.client, header);
  if (const auto wrong = mismatch(header, transfer); !wrong.empty()) throw Error(wrong);
  if (transfer.sent == 0) return;
  if (session.memory->is_ours()) {
    request.payload =
        at::from_blob(reinterpret_cast<void*>(header.address), {elements_sent(transfer)}, at::dtype(transfer.dtype));
    if (session.chain) request.payload = request.payload.clone();  // forwarded later, when the answer may be over it
    return;
  }
  request.payload = empty_payload(transfer);
  if (!session.memory->read(header.address, request.payload.mutable_data_ptr(), transfer.sent)) {
    throw ConnectionError("the client's memory cannot be read");
  }
}

void Server::Loop::give_values(const SessionPtr& session, const Header& request, Message reply,
                               const at::Tensor& values) {
  if (reply.header.status == Status::kDone && values.defined()) {
    reply.header.payload_bytes = values.nbytes();
    reply.header.dtype = static_cast<std::uint8_t>(values.scalar_type());
    if (!request.in_memory()) {
      reply.payload = values.clone();  // the shard goes on
    } else if (!session->memory->write(
                   request.address + host_of(*session).transfer(*session->client, request).returned_at,
                   values.const_data_ptr(), values.nbytes())) {
      return;  // its end comes with the next event
    } else {
      reply.header.flags = kInMemory;
    }
  }
  if (!session->chain) return answer(session, std::move(reply));
  session->chain->replica().when_applied([this, session, reply = std::move(reply)]() mutable {
    try {
      answer(session, std::move(reply));
    } catch (const ConnectionError& error) {
      log_info() << "parameter server: a reply was not taken: " << error.what();
    }
  });
}

// Of this server: all that it holds, alone and as a member of chains.
Message Server::Loop::status_of_all(const Header& request) const {
  auto status = nlohmann::json::parse(host_.status());
  for (const auto& [key, chain] : chains_) {
    const Replica& replica = chain->replica();
    if (replica.role() == Replica::Role::kBlank) continue;
    const auto part = nlohmann::json::parse(replica.host().status());
    status["bytes"] = status.at("bytes").get<std::int64_t>() + part.at("bytes").get<std::int64_t>();
    for (auto table : part.at("tables")) {
      table["role"] = chain->leads() ? "leader" : "copy";
      status["tables"].push_back(std::move(table));
    }
  }
  return {.header = {.verb = request.verb, .status = Status::kDone, .id = request.id}, .text = status.dump()};
}

// That of the part, and how it is replicated.
Message Server::Loop::status_of(Chain& chain, const Header& request) {
  const Replica& replica = chain.replica();
  auto status = nlohmann::json::parse(replica.host().status());
  status["member"] = replica.member();
  status["epoch"] = replica.epoch();
  status["copies"] = replica.copies();
  status["replies_held"] = replica.held();
  return {.header = {.verb = request.verb, .status = Status::kDone, .id = request.id}, .text = status.dump()};
}

void Server::Loop::handle(const SessionPtr& session, Message request) {
  const Header header = request.header;
  try {
    if (header.verb >= Verb::kReplica) throw Error("only servers of a chain say this to each other");
    if (header.verb == Verb::kClear) refuse_if_in_use(*session);
    if (header.in_memory()) fetch_payload(*session, request);
  } catch (const ConnectionError&) {
    throw;
  } catch (const std::exception& error) {
    Message refusal{.header = {.verb = header.verb, .status = Status::kRefused, .id = header.id}, .text = error.what()};
    answer(session, std::move(refusal));
    return;
  }
  if (header.verb == Verb::kPing) {
    return answer(session, {.header = {.verb = header.verb, .status = Status::kDone, .id = header.id}});
  }
  session->left |= header.verb == Verb::kLeave;
  const auto give = [this, session, header](Message reply, const at::Tensor& values) {
    try {
      give_values(session, header, std::move(reply), values);
    } catch (const ConnectionError& error) {
      log_info() << "parameter server: a reply was not taken: " << error.what();
    }
  };
  if (header.verb == Verb::kStatus) {
    return give(session->chain ? status_of(*session->chain, header) : status_of_all(header), {});
  }
  if (!session->chain || header.verb == Verb::kVersion) {
    host_of(*session).handle(*session->client, request, give);
  } else if (session->chain->leads()) {
    session->chain->replica().submit(*session->client, request, give);
  }
}

Server::Server(const ServerOptions& options) : loop_(std::make_unique<Loop>(options)) {
  const BlockedSignals blocked;  // signals go to those threads that expect them
  thread_ = std::thread([this] {
    try {
      loop_->run();
    } catch (const std::exception& error) {
      log_error() << "parameter server: " << error.what();
    }
  });
}

Server::~Server() {
  loop_->stop();
  thread_.join();
  try {
    loop_->write_last_checkpoint();
  } catch (const std::exception& error) {
    log_error() << "parameter server: the last checkpoint could not be taken: " << error.what();
  }
}

const std::vector<std::string>& Server::addresses() const { return loop_->addresses(); }

bool Server::wait_for_clients(const std::string& job, int clients, Seconds timeout) const {
  return loop_->presence().wait_until(
      job, [clients](const Presence::Count& count) { return count.ever >= clients; }, after(timeout));
}

void Server::wait_until_left(const std::string& job) const {
  const auto never = Clock::time_point::max();
  loop_->presence().wait_until(job, [](const Presence::Count& count) { return count.now == 0; }, never);
}

}  // namespace phalanx::ps
