// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/join_relay.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "framework/base/sockets.h"
#include "launch/agents/beats.h"
#include "launch/agents/order_line.h"

namespace phalanx {
namespace {

constexpr const char* kStatus = "status";

// Sends all of a text, however long that takes: the launcher ends this process if the host is silent. Returns false if
// the connection has failed.
bool send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    if (count >= 0) continue;
    if (!not_ready()) return false;
    pollfd ready{.fd = socket, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, -1) < 0 && errno != EINTR) return false;
  }
  return true;
}

enum class Passed { kSome, kEnd, kFailure };

// Passes on what has arrived at a socket. `seen` gets it, too.
template <class Seen>
Passed pass(int from, int to, const Seen& seen) {
  std::array<char, 1 << 14> part;
  const ssize_t count = ::recv(from, part.data(), part.size(), MSG_DONTWAIT);
  if (count < 0) return not_ready() ? Passed::kSome : Passed::kFailure;
  if (count == 0) return Passed::kEnd;
  const std::string_view text(part.data(), static_cast<std::size_t>(count));
  seen(text);
  return send_all(to, text) ? Passed::kSome : Passed::kFailure;
}

}  // namespace

std::optional<int> parse_status(std::string_view line) { return small_number_after(kStatus, line); }

std::string status_text(int status) { return std::string(1, '\0') + kStatus + " " + std::to_string(status) + "\n"; }

int relay(const Descriptor& launcher, const Descriptor& host, const std::string& answer) {
  int status = kConnectionBroke;
  BeatReader reader;
  const auto look = [&](std::string_view text) {
    for (const auto& line : reader.read(text).lines) {
      status = parse_status(line).value_or(status);
    }
  };
  if (!send_all(host.get(), answer)) return kConnectionBroke;
  std::array<pollfd, 2> sources{pollfd{.fd = launcher.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = host.get(), .events = POLLIN, .revents = 0}};
  while (true) {
    if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) return kConnectionBroke;
    if (sources[0].fd >= 0 && sources[0].revents != 0) {
      const auto passed = pass(launcher.get(), host.get(), [](std::string_view) {});
      if (passed == Passed::kFailure) return status;
      if (passed == Passed::kEnd) {  // the agent ends its ranks, and says so
        ::shutdown(host.get(), SHUT_WR);
        sources[0].fd = -1;
      }
    }
    if (sources[1].revents != 0 && pass(host.get(), launcher.get(), look) != Passed::kSome) return status;
  }
}

}  // namespace phalanx
