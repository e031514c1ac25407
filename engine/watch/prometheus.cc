#include "engine/watch/prometheus.h"

#include <httplib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

/// The library ignores SIGPIPE for the whole process; whether output may break is the program's business.
class KeepBrokenPipes {
 public:
  KeepBrokenPipes() { ::sigaction(SIGPIPE, nullptr, &before_); }
  ~KeepBrokenPipes() { ::sigaction(SIGPIPE, &before_, nullptr); }
  KeepBrokenPipes(const KeepBrokenPipes&) = delete;
  KeepBrokenPipes& operator=(const KeepBrokenPipes&) = delete;

 private:
  struct sigaction before_ {};
};

// A thread starts with the signals that its maker blocks. With all of them blocked, a client that leaves is an error of
// its connection alone, and signals go to the threads that expect them.
template <class Body>
std::thread start_without_signals(Body body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

class PrometheusEndpoint::Server {
 public:
  Server() : http_(make()) {
    // Not the library's SO_REUSEPORT, with which two runs could share a port and neither would know.
    http_->set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    http_->new_task_queue = [] { return new httplib::ThreadPool(1); };
    http_->set_keep_alive_max_count(1);  // or one client would hold the one thread
    http_->set_read_timeout(2);
    http_->set_write_timeout(2);
  }
  ~Server() {
    http_->stop();
    if (thread_.joinable()) thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int listen(const std::string& address, int port) {
    errno = 0;
    const int bound = port == 0 ? http_->bind_to_any_port(address) : http_->bind_to_port(address, port) ? port : -1;
    if (bound < 0) {
      throw ConfigError("watch.prometheus: cannot listen at " + address + ":" + std::to_string(port) + ": " +
                        (errno == 0 ? "no such address here" : std::strerror(errno)) + "; choose another port");
    }
    thread_ = start_without_signals([this] { http_->listen_after_bind(); });
    wait_until_running();
    return bound;
  }
  void serve(const std::string& path, std::function<std::string()> text) {
    http_->Get(path, [text = std::move(text)](const httplib::Request&, httplib::Response& response) {
      response.set_content(text(), "text/plain; version=0.0.4; charset=utf-8");
    });
  }

 private:
  // One that is stopped before it runs would never end.
  void wait_until_running() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!http_->is_running()) {
      if (std::chrono::steady_clock::now() > deadline) throw Error("watch.prometheus: the server does not start");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  static std::unique_ptr<httplib::Server> make() {
    const KeepBrokenPipes keep;
    return std::make_unique<httplib::Server>();
  }

  std::unique_ptr<httplib::Server> http_;
  std::thread thread_;
};

PrometheusEndpoint::PrometheusEndpoint(const PrometheusConfig& config, std::string run, int ranks)
    : exposition_{.run = std::move(run), .ranks = ranks}, server_(std::make_unique<Server>()) {
  server_->serve("/metrics", [this] {
    const std::lock_guard lock(mutex_);
    return to_text(exposition_);
  });
  port_ = server_->listen(config.address, static_cast<int>(config.port));
}

PrometheusEndpoint::~PrometheusEndpoint() = default;

void PrometheusEndpoint::add(const Measurement& measurement) {
  const std::lock_guard lock(mutex_);
  exposition_.last[measurement.split] = measurement;
}

}  // namespace phalanx
