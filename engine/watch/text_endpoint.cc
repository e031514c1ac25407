// SPDX-License-Identifier: Apache-2.0
#include "engine/watch/text_endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <sstream>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {
namespace {

constexpr std::chrono::seconds kConnection(2);
constexpr std::chrono::milliseconds kPause(100);
constexpr std::size_t kMaxRequest = 4096;
constexpr int kBacklog = 128;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (problem != 0) throw ConfigError(::gai_strerror(problem));
  return {found, &::freeaddrinfo};
}

OwnedFile listen_at(const addrinfo& where) {
  OwnedFile file(::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol));
  const int yes = 1;
  // Allows the port of a run that has just ended, but not the port of a run that still listens.
  if (file.get() < 0 || ::setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      ::bind(file.get(), where.ai_addr, where.ai_addrlen) != 0 || ::listen(file.get(), kBacklog) != 0) {
    throw ConfigError(std::strerror(errno));
  }
  return file;
}

int port_of(int file) {
  sockaddr_storage storage{};
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  socklen_t size = sizeof(storage);
  if (::getsockname(file, address, &size) != 0) throw ConfigError(std::strerror(errno));
  return ntohs(address->sa_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(address)->sin_port);
}

std::string response(const std::string& status, const std::string& type, const std::string& text, bool with_text) {
  return "HTTP/1.1 " + status + "\r\nContent-Type: " + type + "\r\nContent-Length: " + std::to_string(text.size()) +
         "\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n" + (with_text ? text : "");
}

std::string refusal(const std::string& status, bool with_text = true) {
  return response(status, "text/plain", status + "\n", with_text);
}

bool try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

OwnedFile::~OwnedFile() {
  if (file_ >= 0) ::close(file_);
}

OwnedFile::OwnedFile(OwnedFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

OwnedFile& OwnedFile::operator=(OwnedFile&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

TextEndpoint::TextEndpoint(const std::string& address, int port, Page page)
    : page_(std::move(page)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  try {
    if (stop_.get() < 0) throw ConfigError(std::strerror(errno));
    listener_ = listen_at(*resolve(address, port));
    port_ = port_of(listener_.get());
  } catch (const ConfigError& error) {
    throw ConfigError("cannot listen at " + address + ":" + std::to_string(port) + ": " + error.what() +
                      "; choose another port");
  }
  // Signals must go to threads that expect them.
  const BlockedSignals blocked;
  thread_ = std::thread([this] {
    try {
      serve();
    } catch (const std::exception& error) {
      log_warning() << "metrics are no longer served: " << error.what();
    }
  });
}

TextEndpoint::~TextEndpoint() {
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));  // cannot fail, since the counter is 0
  thread_.join();
}

void TextEndpoint::serve() const {
  std::vector<Connection> connections;
  while (true) {
    std::vector<pollfd> files{{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                              {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const auto& connection : connections) {
      const short events = connection.answer.empty() ? POLLIN : POLLOUT;
      files.push_back({.fd = connection.socket.get(), .events = events, .revents = 0});
    }
    const auto limit = connections.empty() ? std::chrono::hours(1) : kPause;
    if (::poll(files.data(), files.size(), static_cast<int>(limit / std::chrono::milliseconds(1))) < 0 &&
        !try_again()) {
      std::this_thread::sleep_for(kPause);
    }
    if (files[0].revents != 0) return;
    std::erase_if(connections, [this](Connection& connection) {
      return Clock::now() >= connection.deadline || !advance(connection);
    });
    if (files[1].revents != 0) accept_all(connections);
  }
}

void TextEndpoint::accept_all(std::vector<Connection>& connections) const {
  for (std::size_t i = 0; i < kMaxConnections; ++i) {
    OwnedFile client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client.get() < 0) {
      if (!try_again()) std::this_thread::sleep_for(kPause);  // if no file descriptor is left, do not spin
      return;
    }
    if (connections.size() >= kMaxConnections) connections.erase(connections.begin());
    connections.push_back({.socket = std::move(client), .deadline = Clock::now() + kConnection});
    if (!advance(connections.back())) connections.pop_back();
  }
}

// Proceeds as far as possible without waiting. Returns false if the connection has ended.
bool TextEndpoint::advance(Connection& connection) const {
  auto& [socket, deadline, request, text, sent] = connection;
  if (text.empty() && !read_request(connection)) return false;
  while (sent < text.size()) {
    const ssize_t count = ::send(socket.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0) return try_again();
    sent += static_cast<std::size_t>(count);
  }
  if (text.empty()) return true;
  ::shutdown(socket.get(), SHUT_WR);
  return false;
}

// Reads the request, and sets the answer once the request is complete. Returns false if the client has gone.
bool TextEndpoint::read_request(Connection& connection) const {
  auto& request = connection.request;
  std::array<char, 1024> piece;
  while (request.find("\r\n\r\n") == std::string::npos) {
    if (request.size() >= kMaxRequest) {
      connection.answer = refusal("431 Request Header Fields Too Large");
      return true;
    }
    const ssize_t count = ::recv(connection.socket.get(), piece.data(), piece.size(), 0);
    if (count == 0) return false;
    if (count < 0) return try_again();
    request.append(piece.data(), static_cast<std::size_t>(count));
  }
  connection.answer = answer(request);
  return true;
}

std::string TextEndpoint::answer(const std::string& request) const {
  std::string method, target, version;
  std::istringstream(request.substr(0, request.find("\r\n"))) >> method >> target >> version;
  if (version.rfind("HTTP/1.", 0) != 0) return refusal("400 Bad Request");
  if (method != "GET" && method != "HEAD") return refusal("405 Method Not Allowed");
  if (target.substr(0, target.find('?')) != page_.path) return refusal("404 Not Found", method == "GET");
  return response("200 OK", page_.content_type, page_.text(), method == "GET");
}

}  // namespace phalanx
