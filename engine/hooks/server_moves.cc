// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/server_moves.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/texts.h"
#include "framework/ps/client/client.h"

namespace phalanx {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};
constexpr Seconds kToReach{5};

std::vector<std::string> addresses_of(const ps::ServerList& list) {
  std::vector<std::string> all;
  for (const auto& server : list.servers) all.insert(all.end(), server.addresses.begin(), server.addresses.end());
  return all;
}

}  // namespace

ServerMoves::ServerMoves(Options options, CommunicatorPtr group, std::shared_ptr<ps::CurrentServers> servers)
    : options_(std::move(options)),
      group_(group),
      servers_(std::move(servers)),
      vote_(std::move(group), options_.delay, options_.asynchronous) {}

void ServerMoves::attach(Engine& engine) {
  if (options_.file.empty()) return;
  engine.on(Event::kUpdate, HookPhase::kAfterCheckpoint, [this](State& state) { after_step(state); });
}

void ServerMoves::after_step(const State& state) {
  const auto changes = vote_.read();
  vote_.cast(group_->rank() == 0 ? changes_of_file() : 0);
  if (changes <= followed_) return;
  followed_ = changes;
  follow_file(state.step);
}

std::int64_t ServerMoves::changes_of_file() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return changes_;
  next_look_ = now + kBetweenLooks;
  std::error_code missing;  // the file may be missing for a moment while it is replaced
  const auto written = std::filesystem::last_write_time(options_.file, missing);
  if (!missing && written != written_) {
    written_ = written;
    ++changes_;
  }
  return changes_;
}

void ServerMoves::follow_file(std::int64_t step) {
  std::vector<std::string> addresses;
  try {
    addresses = ps::read_addresses(options_.file, *group_);
  } catch (const DataError& error) {
    return warn(error.what());
  }
  if (addresses == addresses_of(servers_->list())) return;
  auto list = servers_->list().at(addresses);
  for (const auto& problem : all_gather_text(unreachable(list), *group_)) {
    if (!problem.empty()) return warn(options_.file + ": " + problem);
  }
  const auto begin = std::chrono::steady_clock::now();
  servers_->change(std::move(list));
  group_->barrier().wait();
  ++moves_;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const auto message = format_text("moved to %zu parameter servers (%s) after step %lld, in %.2f s", addresses.size(),
                                   join(addresses, ", ").c_str(), static_cast<long long>(step), taken.count());
  log_info() << message;
  if (group_->rank() == 0 && options_.shown) standard_output().write("M" + message.substr(1) + "\n");
}

std::string ServerMoves::unreachable(const ps::ServerList& list) const {
  try {
    const ps::Client client({.servers = list.addresses_for(host_key()),
                             .job = list.run + ": before a move",
                             .number = group_->rank(),
                             .secret = list.secret,
                             .timeout = kToReach,
                             .links = list.links});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void ServerMoves::warn(const std::string& why) const {
  if (group_->rank() > 0) return;
  const std::string message =
      "the run stays with its parameter servers until the list of servers changes again: " + why;
  log_warning() << message;
  standard_error().write("T" + message.substr(1) + "\n");
}

}  // namespace phalanx
