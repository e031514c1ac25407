#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/comm/store.h"
#include "framework/ps/channel.h"

namespace phalanx::ps {

/// A client's end of the connection to one server: requests in flight, and their replies as they come. Thread-safe.
class Link {
 public:
  struct Options {
    std::vector<std::string> addresses;  // to try, best first
    std::string job;
    int number = 0;
    std::string secret;
    Seconds timeout{60};
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

 private:
  void connect(const Options& options);
  void greet(const Options& options);
  Message converse(Message message);

  void move_on();
  void take(Message reply);
  void fail_all(const std::exception_ptr& error);
  void poll_once(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline);
  void wake_poller();
  void run();

  std::string address_;
  Seconds timeout_;
  bool reaches_memory_ = false;  // the server reaches ours

  std::mutex mutex_;
  std::condition_variable moved_;
  std::unique_ptr<Channel> channel_;
  std::map<std::uint64_t, RequestPtr> in_flight_;
  std::uint64_t next_id_ = 1;
  bool polling_ = false;  // a thread waits at the socket, for all
  bool stopping_ = false;
  std::exception_ptr broken_{};
  Descriptor wake_;  // the thread that waits at the socket
  std::thread thread_;
};

}  // namespace phalanx::ps
