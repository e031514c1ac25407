// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace phalanx {

/// A file descriptor that is closed with its owner.
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

/// Serves a text at one path over HTTP, to GET and HEAD, while it lives: in a thread of its own, which has many
/// connections open at a time and expects no signals.
///
/// No client can hold up another or the endpoint: of a request 4 KiB are read at most, a connection lasts 2 s at most,
/// the oldest gives way where there are kMostConnections, and the destructor waits for none.
class TextEndpoint {
 public:
  struct Page {
    std::string path;  // "/metrics"
    std::string content_type;
    std::function<std::string()> text;  // called by the endpoint's thread
  };

  /// Listens at `port` of `address`, a name or a number; port 0 is any that is free. Throws ConfigError where it
  /// cannot.
  TextEndpoint(const std::string& address, int port, Page page);
  ~TextEndpoint();
  TextEndpoint(const TextEndpoint&) = delete;
  TextEndpoint& operator=(const TextEndpoint&) = delete;

  static constexpr std::size_t kMostConnections = 64;

  int port() const { return port_; }

 private:
  using Clock = std::chrono::steady_clock;

  // A request that is being read, then the answer that is being sent.
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
  OwnedFile stop_;  // an eventfd that is readable when the thread is to end
  OwnedFile listener_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace phalanx
