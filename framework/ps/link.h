// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/comm/store.h"
#include "framework/ps/channel.h"
#include "framework/ps/deadline.h"
#include "framework/ps/handshake.h"

namespace phalanx::ps {

/// A client's end of the connection to one server: requests in flight, and their replies as they come. Thread-safe.
///
/// With Options::retry, a connection that breaks is made again, by a thread of the link, and what was not answered is
/// sent again. An exchange then keeps a copy of its update, over which the answer is written.
///
/// Where several servers hold the same part (replica.h), the link is to that which leads them. Once the leader has
/// ended, or could not be reached for Options::failover, another one is asked to lead.
class Link {
 public:
  struct Options {
    std::vector<std::vector<std::string>> members;  // servers that hold the part; of each, addresses to try, best first
    std::string job;
    int number = 0;
    std::string secret;
    Seconds timeout{60};
    Seconds retry{0};     // for which a connection that broke is made again; 0: not at all
    Seconds failover{0};  // after which another member is asked to lead

    bool replicated() const { return members.size() > 1; }
  };

  explicit Link(const Options& options);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// A request in flight.
  struct Request {
    Message message{};                                                     // without a payload
    at::Tensor tensor{};                                                   // belongs to it until it is done
    Transfer transfer{};                                                   // of the tensor
    std::string what{};                                                    // for errors: "push of table weights"
    std::function<void(const Header& reply)> done = [](const Header&) {};  // called under the link's lock

    at::Tensor update{};  // copy of what is sent, where the answer may overwrite it
    bool finished = false;
    std::exception_ptr error{};
    Message reply{};
  };
  using RequestPtr = std::shared_ptr<Request>;

  /// Numbers the request, and sends as much of it as goes at once.
  void send(const RequestPtr& request);

  /// Blocks until it is done; throws its error.
  void wait(const RequestPtr& request);
  bool done(const RequestPtr& request);

  const std::string& address() const { return address_; }

  /// Table `number` here is called so: its version is asked for when a server comes back that had been started anew.
  void know_table(std::uint32_t number, const std::string& name);
  void forget_table(std::uint32_t number);
  void forget_tables();

  /// How many updates of tables that it knows were acknowledged, by what this client has been told, and are gone since
  /// the server resumed from an older checkpoint.
  std::int64_t lost_updates();

 private:
  struct Known {
    std::string name;
    std::int64_t version = 0;  // as we were told last
  };
  using TimePoint = Clock::time_point;
  static constexpr Seconds kAttempt{5};  // to connect again

  std::exception_ptr lost(const std::string& message) const;
  static std::string what_of(const std::exception_ptr& error);
  static at::Tensor bytes_of(const at::Tensor& tensor, std::uint64_t begin, std::uint64_t count);  // dense in memory

  // What one look at all members has found.
  struct Search {
    std::optional<Greeted> found{};
    std::vector<std::string> failures{};
    bool leader_has_ended = false;
    bool nobody_there = true;  // no member could be talked to
  };
  Search search(bool take_over, TimePoint deadline);
  Greeted connect(TimePoint deadline);
  Greeted connect_first();
  Channel::MakeRoom room_for_replies();

  void leave();
  void lose(const std::exception_ptr& error);
  void look_whether_it_lives();
  void reconnect(std::unique_lock<std::mutex>& lock);
  void ask_for_versions(Greeted& greeted, std::map<std::uint32_t, Known>& known, std::int64_t& lost,
                        TimePoint deadline);
  void go_on_with(Greeted greeted);
  void start_thread();
  void transmit(const RequestPtr& request);

  void move_on();
  void take(Message reply);
  void fail_all(const std::exception_ptr& error);
  void poll_once(std::unique_lock<std::mutex>& lock, TimePoint deadline);
  void wake_poller();
  void run();

  const Options options_;
  const std::string incarnation_;
  std::string address_;
  bool reaches_memory_ = false;  // the server reaches ours
  std::int64_t start_ = 0;       // of the server

  std::mutex mutex_;
  std::condition_variable moved_;
  std::unique_ptr<Channel> channel_;         // null: the connection broke, and is being made again
  TimePoint give_up_at_ = TimePoint::max();  // unless the server answers before
  TimePoint connected_again_at_{};
  std::map<std::uint32_t, Known> tables_;
  std::int64_t lost_updates_ = 0;
  std::map<std::uint64_t, RequestPtr> in_flight_;
  std::uint64_t next_id_ = 1;
  std::size_t leader_ = 0;  // of the members, as far as known; of the thread that connects
  TimePoint lost_at_ = Clock::now();
  TimePoint heard_at_ = Clock::now();  // from the server
  RequestPtr ping_{};                  // that asks whether it lives; null: none is under way
  TimePoint pinged_at_{};
  bool polling_ = false;  // a thread waits at the socket, for all
  std::atomic<bool> stopping_ = false;
  std::exception_ptr broken_{};
  Descriptor wake_;  // the thread that waits at the socket
  std::thread thread_;
};

}  // namespace phalanx::ps
