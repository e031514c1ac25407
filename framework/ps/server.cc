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
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/ps/authentication.h"
#include "framework/ps/channel.h"
#include "framework/ps/checkpoint_writer.h"
#include "framework/ps/greeting.h"
#include "framework/ps/peer_memory.h"

namespace phalanx::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds kSpin(50);  // for the next request, before the thread sleeps
constexpr std::size_t kMostQueued =
    256 << 20;  // bytes of replies that a client has not taken, before it is not read from

// One client's connection.
struct Session {
  explicit Session(Descriptor socket)
      : channel(std::move(socket), [this](const Message& begun) { return make_room(begun); }) {}

  Channel channel;
  std::string nonce = random_text();  // of the server
  std::optional<ClientId> client{};   // once it has proved who it is
  std::optional<PeerMemory> memory{};
  bool left = false;  // it said so
  std::function<at::Tensor(const Message& begun)> make_room;
};

Clock::duration duration_of(Seconds seconds) { return std::chrono::duration_cast<Clock::duration>(seconds); }

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

  // Blocks until `holds` is true of a job's clients, or until the deadline.
  struct Presence {
    int ever = 0, now = 0;
  };
  template <class Predicate>
  bool wait_until(const std::string& job, const Predicate& holds, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return presence_changed_.wait_until(lock, deadline, [&] { return holds(presence_[job]); });
  }

 private:
  using SessionPtr = std::shared_ptr<Session>;

  void watch(int socket, std::uint32_t events, int how);
  int wait_for_events(std::array<epoll_event, 64>& events) const;
  void resume();
  bool has_unwritten() const { return host_.changes() != changes_written_ || writer_->failed(); }
  void do_what_is_due();
  void accept_all(int listener);
  void serve(const SessionPtr& session, std::uint32_t events);
  void end(const SessionPtr& session, const std::string& why);
  void count(const std::string& job, int change);
  void answer(const SessionPtr& session, Message reply);

  void greet(const SessionPtr& session, const Message& message);
  void welcome(const ClientId& client);
  void handle(const SessionPtr& session, Message request);
  at::Tensor make_room(const Session& session, const Message& begun);
  void refuse_if_in_use(const Session& session) const;
  void fetch_payload(const Session& session, Message& request);
  void give_values(const SessionPtr& session, const Header& request, Message reply, const at::Tensor& values);

  ServerOptions options_;
  std::vector<Descriptor> listeners_;
  std::vector<std::string> addresses_;
  Descriptor wake_, epoll_;
  ShardHost host_;
  std::map<int, SessionPtr> sessions_;              // by socket
  std::map<ClientId, Clock::time_point> away_;      // whose connection has broken: until when others wait for them
  std::uint64_t start_ = number_of(random_text());  // of this start of the server

  std::unique_ptr<CheckpointWriter> writer_;
  Clock::time_point next_checkpoint_ = Clock::time_point::max();
  std::int64_t changes_written_ = 0;

  std::mutex mutex_;  // of what follows
  std::condition_variable presence_changed_;
  std::map<std::string, Presence> presence_;  // by job
};

Server::Loop::Loop(const ServerOptions& options)
    : options_(options),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      host_(options.limits) {
  if (!wake_.valid() || !epoll_.valid()) throw Error(std::string("cannot start a server: ") + std::strerror(errno));
  watch(wake_.get(), EPOLLIN, EPOLL_CTL_ADD);
  if (!options.checkpoint.folder.empty()) resume();
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
  auto due = next_checkpoint_;
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
      if (const auto found = sessions_.find(socket); found != sessions_.end()) {
        const SessionPtr session = found->second;  // lives to the end of this, even where that is the connection's
        serve(session, events[i].events);
      } else {
        accept_all(socket);
      }
    }
    do_what_is_due();
  }
}

void Server::Loop::resume() {
  Checkpoints checkpoints(options_.checkpoint.folder);
  std::string refused;
  const auto state = checkpoints.newest([&refused](const std::string& why) {
    log_warning() << "parameter server: " << why;
    refused = why;
  });
  if (!state && !refused.empty()) {
    throw Error("none of the checkpoints in " + options_.checkpoint.folder +
                " can be used; choose another folder to begin anew. The last of them: " + refused);
  }
  if (state) {
    host_.load(*state);
    for (const auto& client : host_.known_clients()) away_[client] = Clock::now() + duration_of(options_.grace);
  }
  writer_ = std::make_unique<CheckpointWriter>(std::move(checkpoints));
  changes_written_ = host_.changes();
  next_checkpoint_ = Clock::now() + duration_of(options_.checkpoint.every);
}

void Server::Loop::do_what_is_due() {
  if (away_.empty() && next_checkpoint_ == Clock::time_point::max()) return;
  const auto now = Clock::now();
  for (auto next = away_.begin(); next != away_.end();) {
    const auto one = next++;
    if (one->second > now) continue;
    log_info() << "parameter server: client " << one->first.number << " of job \"" << one->first.job
               << "\" has not come back: nobody waits for it any more";
    host_.stop_waiting_for(one->first);
    away_.erase(one);
  }
  if (now < next_checkpoint_) return;
  next_checkpoint_ = now + duration_of(options_.checkpoint.every);
  if (!has_unwritten()) return;
  try {
    if (writer_->begin(host_)) {
      changes_written_ = host_.changes();
    } else {
      log_warning() << "parameter server: the last checkpoint is still being written, this one is left out";
    }
  } catch (const std::exception& error) {
    log_error() << "parameter server: no copy for a checkpoint could be taken, the next one will be tried: "
                << error.what();
  }
}

// When the thread has ended.
void Server::Loop::write_last_checkpoint() {
  if (!writer_) return;
  writer_->finish();
  if (has_unwritten()) writer_->begin(host_);
  writer_->finish();
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
        if (session->client) {
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
  log_info() << "parameter server: the connection of "
             << (session->client
                     ? "client " + std::to_string(session->client->number) + " of job \"" + session->client->job + "\""
                     : std::string("an unknown client"))
             << " ended: " << why;
  sessions_.erase(session->channel.socket());
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, session->channel.socket(), nullptr);
  if (!session->client) return;
  const bool another = std::ranges::any_of(sessions_, [&](const auto& one) {
    const auto& client = one.second->client;
    return client && client->job == session->client->job && client->number == session->client->number;
  });
  count(session->client->job, -1);
  if (another) return;  // of a newer incarnation
  host_.forget_reads(*session->client);
  if (!session->left && options_.grace > Seconds(0)) {
    away_[*session->client] = Clock::now() + duration_of(options_.grace);
  } else if (!session->left) {
    host_.stop_waiting_for(*session->client);
  }
}

// One that is still connected, as it seems, has found out before us that its connection is broken. Of older
// incarnations, nothing can come any more.
void Server::Loop::welcome(const ClientId& client) {
  std::vector<SessionPtr> old;
  for (const auto& [socket, session] : sessions_) {
    if (session->client == client) old.push_back(session);
  }
  for (const auto& session : old) end(session, "it has connected again");
  std::erase_if(away_,
                [&](const auto& one) { return one.first.job == client.job && one.first.number == client.number; });
}

void Server::Loop::count(const std::string& job, int change) {
  const std::lock_guard lock(mutex_);
  auto& presence = presence_[job];
  presence.now += change;
  presence.ever += std::max(change, 0);
  presence_changed_.notify_all();
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
    const ClientId client{.job = greeting.job,
                          .number = static_cast<int>(greeting.client),
                          .incarnation = number_of(greeting.incarnation)};
    welcome(client);
    session->client = client;
    session->memory = PeerMemory::behind(session->channel.socket(), static_cast<std::uint64_t>(greeting.memory),
                                         greeting.memory_check);
    count(greeting.job, 1);
    reply.text = proof_of(Role::kServer);
    reply.header.version = session->memory ? 1 : 0;
    reply.header.clock = static_cast<std::int64_t>(start_);
  }
  session->channel.send(std::move(reply));
}

// Memory is only taken for what fits the table; the connection is of no more use where it does not, since what follows
// cannot be told from the next request.
at::Tensor Server::Loop::make_room(const Session& session, const Message& begun) {
  if (!session.client) throw ConnectionError("a client sent values before it said who it is");
  const Transfer transfer = host_.transfer(*session.client, begun.header);
  if (const auto wrong = mismatch(begun.header, transfer); !wrong.empty()) throw ConnectionError(wrong);
  return empty_payload(transfer);
}

void Server::Loop::refuse_if_in_use(const Session& session) const {
  for (const auto& [socket, other] : sessions_) {
    if (other.get() == &session || !other->client || other->left || other->client->job != session.client->job) continue;
    throw Error("another client (number " + std::to_string(other->client->number) + ") uses job \"" +
                session.client->job + "\"; give one of the two another name");
  }
}

void Server::Loop::fetch_payload(const Session& session, Message& request) {
  const Header& header = request.header;
  if (!session.memory) throw Error("this server cannot reach the client's memory");
  const Transfer transfer = host_.transfer(*session.client, header);
  if (const auto wrong = mismatch(header, transfer); !wrong.empty()) throw Error(wrong);
  if (transfer.sent == 0) return;
  if (session.memory->is_ours()) {
    request.payload =
        at::from_blob(reinterpret_cast<void*>(header.address), {elements_sent(transfer)}, at::dtype(transfer.dtype));
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
    } else if (!session->memory->write(request.address + host_.transfer(*session->client, request).returned_at,
                                       values.const_data_ptr(), values.nbytes())) {
      return;  // its end comes with the next event
    } else {
      reply.header.flags = kInMemory;
    }
  }
  answer(session, std::move(reply));
}

void Server::Loop::handle(const SessionPtr& session, Message request) {
  const Header header = request.header;
  try {
    if (header.verb == Verb::kClear) refuse_if_in_use(*session);
    if (header.in_memory()) fetch_payload(*session, request);
  } catch (const ConnectionError&) {
    throw;
  } catch (const std::exception& error) {
    Message refusal{.header = {.verb = header.verb, .status = Status::kRefused, .id = header.id}, .text = error.what()};
    answer(session, std::move(refusal));
    return;
  }
  session->left |= header.verb == Verb::kLeave;
  host_.handle(*session->client, request, [this, session, header](Message reply, const at::Tensor& values) {
    try {
      give_values(session, header, std::move(reply), values);
    } catch (const ConnectionError& error) {
      log_info() << "parameter server: a reply was not taken: " << error.what();
    }
  });
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
  const auto deadline = Clock::now() + duration_of(timeout);
  return loop_->wait_until(
      job, [clients](const Loop::Presence& presence) { return presence.ever >= clients; }, deadline);
}

void Server::wait_until_left(const std::string& job) const {
  const auto never = Clock::time_point::max();
  loop_->wait_until(job, [](const Loop::Presence& presence) { return presence.now == 0; }, never);
}

}  // namespace phalanx::ps
