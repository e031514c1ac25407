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

/// A client's end of the connection to one server. Keeps the requests in flight and receives their replies.
/// Thread-safe.
///
/// With Options::retry, a thread of the link re-establishes a broken connection and sends unanswered requests again. An
/// exchange then keeps a copy of its update, because the reply overwrites the tensor.
///
/// If several servers hold the same part (replica.h), the link connects to the one that leads them. Once the leader has
/// ended, or could not be reached for Options::failover, another server is asked to lead.
class Link {
 public:
  struct Options {
    std::vector<std::vector<std::string>> members;  // servers that hold the part; addresses of each, best first
    std::string job;
    int number = 0;
    std::string secret;
    Seconds timeout{60};
    Seconds retry{0};     // time limit for re-establishing a broken connection; 0: do not try
    Seconds failover{0};  // time until another member is asked to lead if the leader cannot be reached

    bool replicated() const { return members.size() > 1; }
  };

  explicit Link(const Options& options);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// A request in flight.
  struct Request {
    Message message{};                                                     // without a payload
    at::Tensor tensor{};                                                   // belongs to the request until finished
    Transfer transfer{};                                                   // bytes of `tensor` to send and return
    std::string what{};                                                    // for errors, e.g. "push of table weights"
    std::function<void(const Header& reply)> done = [](const Header&) {};  // called with the link's lock held

    at::Tensor update{};  // copy of the values sent, if the reply may overwrite them
    bool finished = false;
    std::exception_ptr error{};
    Message reply{};
  };
  using RequestPtr = std::shared_ptr<Request>;

  /// Assigns an id to the request and sends as much of it as the socket accepts at once.
  void send(const RequestPtr& request);

  /// Blocks until the request is finished and throws its error, if any.
  void wait(const RequestPtr& request);
  bool done(const RequestPtr& request);

  const std::string& address() const { return address_; }

  /// Registers the name of table `number`. If the server comes back after a restart, the link asks it for the version
  /// of every registered table.
  void know_table(std::uint32_t number, const std::string& name);
  void forget_table(std::uint32_t number);
  void forget_tables();

  /// Returns how many acknowledged updates of registered tables were lost because the server resumed from an older
  /// checkpoint. Only updates that this client knows of are counted.
  std::int64_t lost_updates();

 private:
  struct Known {
    std::string name;
    std::int64_t version = 0;  // the last version received from the server
  };
  using TimePoint = Clock::time_point;
  static constexpr Seconds kAttempt{5};  // time limit for an attempt to reconnect

  std::exception_ptr lost(const std::string& message) const;
  static std::string what_of(const std::exception_ptr& error);
  static at::Tensor bytes_of(const at::Tensor& tensor, std::uint64_t begin, std::uint64_t count);  // must be contiguous

  // The result of trying all members once.
  struct Search {
    std::optional<Greeted> found{};
    std::vector<std::string> failures{};
    bool leader_has_ended = false;
    bool nobody_there = true;  // no member answered
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
  bool reaches_memory_ = false;  // the server can access our memory
  std::int64_t start_ = 0;       // random number of this start of the server

  std::mutex mutex_;
  std::condition_variable moved_;
  std::unique_ptr<Channel> channel_;         // null while a broken connection is being re-established
  TimePoint give_up_at_ = TimePoint::max();  // deadline, unless the server answers earlier
  TimePoint connected_again_at_{};
  std::map<std::uint32_t, Known> tables_;
  std::int64_t lost_updates_ = 0;
  std::map<std::uint64_t, RequestPtr> in_flight_;
  std::uint64_t next_id_ = 1;
  std::size_t leader_ = 0;  // index of the last known leader; used by the connecting thread
  TimePoint lost_at_ = Clock::now();
  TimePoint heard_at_ = Clock::now();  // when the server last answered
  RequestPtr ping_{};                  // checks that the server is alive; null: none is in flight
  TimePoint pinged_at_{};
  bool polling_ = false;  // a thread waits at the socket on behalf of all
  std::atomic<bool> stopping_ = false;
  std::exception_ptr broken_{};
  Descriptor wake_;  // wakes the thread that waits at the socket
  std::thread thread_;
};

}  // namespace phalanx::ps
