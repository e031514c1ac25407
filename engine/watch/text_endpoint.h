// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace phalanx {

/// A file descriptor that its owner closes.
class OwnedFile {
 public:
  explicit OwnedFile(int file = -1) : file_(file) {}
  ~OwnedFile();
  OwnedFile(OwnedFile&& other) noexcept;
  OwnedFile& operator=(OwnedFile&& other) noexcept;
  int get() const { return file_; }

 private:
  int file_;
};

/// Serves a text at one path over HTTP, to GET and HEAD, during its lifetime. A separate thread has many connections
/// open at the same time and receives no signals.
///
/// No client can block another or the endpoint: at most 4 KiB of a request are read, a connection lasts at most 2 s,
/// the oldest connection is closed if there are kMaxConnections, and the destructor does not wait for connections.
class TextEndpoint {
 public:
  struct Page {
    std::string path;  // "/metrics"
    std::string content_type;
    std::function<std::string()> text;  // called by the endpoint's thread
  };

  /// Listens at `port` of `address`, a name or a number; port 0 selects any free port. Throws ConfigError if that is
  /// not possible.
  TextEndpoint(const std::string& address, int port, Page page);
  ~TextEndpoint();
  TextEndpoint(const TextEndpoint&) = delete;
  TextEndpoint& operator=(const TextEndpoint&) = delete;

  static constexpr std::size_t kMaxConnections = 64;

  int port() const { return port_; }

 private:
  using Clock = std::chrono::steady_clock;

  // A connection whose request is being read, or whose answer is being sent.
  struct Connection {
    OwnedFile socket;
    Clock::time_point deadline;
    std::string request{}, answer{};
    std::size_t sent = 0;
  };

  void serve() const;
  void accept_all(std::vector<Connection>& connections) const;
  bool advance(Connection& connection) const;
  bool read_request(Connection& connection) const;
  std::string answer(const std::string& request) const;

  Page page_;
  OwnedFile stop_;  // an eventfd that becomes readable when the thread must end
  OwnedFile listener_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace phalanx
