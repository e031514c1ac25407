// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/agent_connections.h"

#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "framework/base/console.h"
#include "framework/base/error.h"
#include "launch/agents/agent.h"

namespace phalanx {
namespace {

constexpr int kMostParts = 256;  // 1 MiB, more than the system keeps for a socket

}  // namespace

std::size_t AgentConnections::start(std::size_t host, Supervisor& supervisor,
                                    const std::function<int(const Descriptor& socket)>& body) {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error("cannot make a socket: " + std::generic_category().message(errno));
  }
  auto own_end = std::make_shared<Descriptor>(ends[0]);
  const Descriptor socket(ends[1]);
  const std::size_t agent = agents_.size();
  supervisor.start([&] { return body(socket); });
  agents_.push_back({.host = host, .beats = HostBeats(lease_), .socket = std::move(own_end)});
  supervisor.watch(ends[0], [this, agent] { return read(agent); });
  return agent;
}

void AgentConnections::send(std::size_t agent, const std::string& text, int flags) {
  for (std::size_t sent = 0; sent < text.size();) {
    const int socket = agents_[agent].socket->get();
    const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | flags);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
}

void AgentConnections::send_to_others(std::size_t agent, const std::string& text) {
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    if (i != agent) send(i, text, MSG_DONTWAIT);
  }
}

bool AgentConnections::tell(std::size_t agent, int signal) {
  const char* order = signal == SIGUSR1 ? kStopRanks : signal == SIGTERM ? kEndRanks : kKillRanks;
  send(agent, std::string(order) + "\n", MSG_DONTWAIT);
  if (signal == SIGKILL) ::shutdown(agents_[agent].socket->get(), SHUT_WR);
  return signal != SIGKILL;
}

bool AgentConnections::read(std::size_t index) {
  AgentConnection& agent = agents_[index];
  std::array<char, 4096> part;
  for (int parts = 0; parts < kMostParts; ++parts) {
    const ssize_t count = ::recv(agent.socket->get(), part.data(), part.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    const auto read = agent.reader.read({part.data(), static_cast<std::size_t>(count)});
    if (!read.text.empty()) standard_output().write(read.text);
    take_(read.lines);
    if (read.beats.empty() || agent.silent_for > 0) continue;
    agent.beats.heard(HostBeats::Clock::now());
    send(index, kAnswer + (" " + std::to_string(read.beats.back())) + "\n", MSG_DONTWAIT);
  }
  return true;
}

void AgentConnections::read_all() {
  for (std::size_t i = 0; i < agents_.size(); ++i) read(i);
}

}  // namespace phalanx
