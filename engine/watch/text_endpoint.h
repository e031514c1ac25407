#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

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

/// Serves a text at one path over HTTP, to GET and HEAD, while it lives: in a thread of its own, which takes one
/// connection after the other and expects no signals.
///
/// No client can hold it up: of a request 4 KiB are read at most, a connection lasts 2 s at most, and the destructor
/// waits for none.
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

  int port() const { return port_; }

 private:
  using Clock = std::chrono::steady_clock;

  void serve() const;
  void converse(int client) const;
  std::string answer(const std::string& request) const;
  bool send_all(int client, const std::string& bytes, Clock::time_point deadline) const;
  bool wait(int file, short events, Clock::time_point deadline) const;

  Page page_;
  OwnedFile stop_;  // an eventfd that is readable when the thread is to end
  OwnedFile listener_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace phalanx
