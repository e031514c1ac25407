// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/server/server.h"

#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>

#include "framework/base/blocked_signals.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/ps/server/server_loop.h"

namespace phalanx::ps {

Server::Server(const ServerOptions& options) : loop_(std::make_unique<Loop>(options)) {
  const BlockedSignals blocked;  // signals go to the threads that expect them
  thread_ = std::thread([this] {
    try {
      loop_->run();
    } catch (const std::exception& error) {
      log_error() << "parameter server: ends this process after an error: " << error.what();
      std::_Exit(EXIT_FAILURE);  // not std::exit: other threads may be in any state
    }
  });
}

Server::~Server() {
  try {
    stop();
  } catch (const std::exception& error) {
    log_error() << error.what();
  }
}

void Server::stop() {
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
  try {
    loop_->write_last_checkpoint();
  } catch (const std::exception& error) {
    throw Error(
        "parameter server: the last checkpoint could not be written, and what it held since the one before is "
        "lost: " +
        std::string(error.what()));
  }
}

const std::vector<std::string>& Server::addresses() const { return loop_->addresses(); }

bool Server::wait_for_clients(const std::string& job, int clients, Seconds timeout) const {
  return loop_->presence().wait_until(
             job, [clients](const Presence::Count& count) { return count.ever >= clients || count.lost > 0; },
             after(timeout)) &&
         loop_->presence().of(job).ever >= clients;
}

void Server::wait_until_left(const std::string& job) const {
  const auto never = Clock::time_point::max();
  loop_->presence().wait_until(job, [](const Presence::Count& count) { return count.now == 0; }, never);
}

void Server::wait_until_left_or_lost(const std::string& job) const {
  const auto over = [](const Presence::Count& count) { return count.now == 0 || count.lost > 0; };
  loop_->presence().wait_until(job, over, Clock::time_point::max());
}

bool Server::has_lost(const std::string& job) const { return loop_->presence().of(job).lost > 0; }

}  // namespace phalanx::ps
