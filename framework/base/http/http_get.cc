// SPDX-License-Identifier: Apache-2.0
#include "framework/base/http/http_get.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/printable.h"
#include "framework/base/sockets.h"

namespace phalanx {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

std::string host_and_port(const HttpAddress& address) {
  const bool six = address.host.find(':') != std::string::npos;
  return (six ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

[[noreturn]] void fail(const HttpAddress& address, const std::string& why) {
  throw Error("http://" + host_and_port(address) + address.path + ": " + printable(why));
}

void wait_for(const HttpAddress& address, int socket, short events, Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd file{.fd = socket, .events = events, .revents = 0};
  if (left.count() <= 0 || ::poll(&file, 1, static_cast<int>(left.count())) == 0) fail(address, "no answer in time");
}

void send_all(const HttpAddress& address, int socket, std::string_view text, Deadline deadline) {
  while (!text.empty()) {
    const ssize_t count = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && !not_ready()) fail(address, std::strerror(errno));
    if (count < 0) wait_for(address, socket, POLLOUT, deadline);
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
}

// Returns all that the server sends until it closes the connection.
std::string receive_all(const HttpAddress& address, int socket, Deadline deadline) {
  std::string text;
  std::array<char, 16384> piece;
  while (text.size() <= kMaxBody) {
    const ssize_t count = ::recv(socket, piece.data(), piece.size(), 0);
    if (count == 0) return text;
    if (count < 0 && !not_ready()) fail(address, std::strerror(errno));
    if (count < 0) wait_for(address, socket, POLLIN, deadline);
    text.append(piece.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  fail(address, "the answer is too long");
}

// Returns the number of bytes that the head of an answer promises, or 0 if it says nothing about it.
std::size_t promised_bytes(std::string head) {
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kName = "\r\ncontent-length: ";
  const auto at = head.find(kName);
  std::size_t bytes = 0;
  if (at != head.npos) std::from_chars(head.data() + at + kName.size(), head.data() + head.size(), bytes);
  return bytes;
}

}  // namespace

HttpAddress parse_http_address(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  const auto refuse = [text] { throw ConfigError(std::string(text) + ": expected http://HOST:PORT/PATH"); };
  if (!text.starts_with(kScheme)) refuse();
  const auto rest = text.substr(kScheme.size());
  const auto slash = std::min(rest.find('/'), rest.size());
  auto host = rest.substr(0, slash);
  HttpAddress address;
  if (slash < rest.size()) address.path = rest.substr(slash);
  const auto colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    const auto port = host.substr(colon + 1);
    const auto parsed = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (parsed.ec != std::errc{} || parsed.ptr != port.data() + port.size()) refuse();
    host = host.substr(0, colon);
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.find_first_of("[]") != std::string_view::npos) refuse();
  const bool has_control = std::ranges::any_of(text, [](unsigned char c) { return c <= ' ' || c == 127; });
  if (host.empty() || has_control || address.port < 1 || address.port > 65535) refuse();
  address.host = host;
  return address;
}

std::string http_get(const HttpAddress& address, double timeout_seconds) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(timeout_seconds));
  const Descriptor socket = connect_to(host_and_port(address), timeout_seconds);
  // With HTTP/1.0, the server sends the body as it is and closes the connection after it.
  send_all(address, socket.get(),
           "GET " + address.path + " HTTP/1.0\r\nHost: " + host_and_port(address) + "\r\nConnection: close\r\n\r\n",
           deadline);
  const std::string answer = receive_all(address, socket.get(), deadline);
  const std::string line = answer.substr(0, answer.find("\r\n")), end_of_head = "\r\n\r\n";
  const auto body = answer.find(end_of_head);
  if (!line.starts_with("HTTP/1.") || body == std::string::npos) fail(address, "the answer is not HTTP");
  if (line.size() < 12 || line.substr(9, 3) != "200")
    fail(address, "the server answers \"" + line.substr(std::min<std::size_t>(9, line.size())) + "\"");
  if (answer.size() - body - end_of_head.size() < promised_bytes(answer.substr(0, body))) {
    fail(address, "the connection was closed before the end of the page");
  }
  return answer.substr(body + end_of_head.size());
}

}  // namespace phalanx
