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
#include <utility>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/http/http_authentication.h"
#include "framework/base/keyed_hash.h"
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

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns the value of a field of the head, or an empty string. `name` is in lower case.
std::string field_of(const std::string& head, const std::string& name) {
  const std::string before = "\r\n" + name + ": ";
  const auto at = lower(head).find(before);
  if (at == std::string::npos) return "";
  const auto begin = at + before.size();
  return head.substr(begin, std::min(head.find("\r\n", begin), head.size()) - begin);
}

// Returns the number of bytes that the head of an answer promises, or 0 if it says nothing about it.
std::size_t promised_bytes(const std::string& head) {
  const std::string value = field_of(head, "content-length");
  std::size_t bytes = 0;
  std::from_chars(value.data(), value.data() + value.size(), bytes);
  return bytes;
}

struct Answer {
  std::string line;  // the first one, without "HTTP/1.1 ": "200 OK"
  std::string head;  // with that line
  std::string body;
};

// With HTTP/1.0, the server sends the body as it is and closes the connection after it.
Answer ask(const HttpAddress& address, const std::string& authorization, Deadline deadline) {
  const std::chrono::duration<double> left = deadline - std::chrono::steady_clock::now();
  const Descriptor socket = connect_to(host_and_port(address), std::max(0.0, left.count()));
  send_all(address, socket.get(),
           "GET " + address.path + " HTTP/1.0\r\nHost: " + host_and_port(address) + "\r\nConnection: close\r\n" +
               (authorization.empty() ? "" : "Authorization: " + authorization + "\r\n") + "\r\n",
           deadline);
  const std::string text = receive_all(address, socket.get(), deadline);
  const std::string line = text.substr(0, text.find("\r\n")), end_of_head = "\r\n\r\n";
  const auto end = text.find(end_of_head);
  if (!line.starts_with("HTTP/1.") || end == std::string::npos) fail(address, "the answer is not HTTP");
  Answer answer{.line = line.substr(std::min<std::size_t>(9, line.size())),
                .head = text.substr(0, end),
                .body = text.substr(end + end_of_head.size())};
  if (answer.body.size() < promised_bytes(answer.head)) {
    fail(address, "the connection was closed before the end of the page");
  }
  return answer;
}

std::string answer_challenge(const HttpAddress& address, const Answer& answer, const std::string& secret) {
  try {
    return digest_answer(field_of(answer.head, "www-authenticate"), "GET", address.path, secret, random_text());
  } catch (const Error& error) {
    fail(address, error.what());
  }
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

std::string http_get(const HttpAddress& address, double timeout_seconds, const std::optional<std::string>& secret) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(timeout_seconds));
  constexpr int kProofs = 3;  // the server may have forgotten the nonce by the time it gets the proof
  Answer answer = ask(address, "", deadline);
  for (int i = 0; i < kProofs && secret && answer.line.starts_with("401"); ++i) {
    if (i > 0 && lower(field_of(answer.head, "www-authenticate")).find("stale") == std::string::npos) break;
    answer = ask(address, answer_challenge(address, answer, *secret), deadline);
  }
  if (answer.line.starts_with("401")) {
    fail(address, secret ? "the server has another secret (PHALANX_JOB_SECRET, PHALANX_JOB_SECRET_FILE)"
                         : "the server asks for the job's secret; set PHALANX_JOB_SECRET or PHALANX_JOB_SECRET_FILE");
  }
  if (!answer.line.starts_with("200")) fail(address, "the server answers \"" + answer.line + "\"");
  return std::move(answer.body);
}

}  // namespace phalanx
