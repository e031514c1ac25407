// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/join_port.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"
#include "framework/base/new_file.h"
#include "framework/base/sockets.h"
#include "framework/base/write_all.h"
#include "framework/comm/launch/address_for_peers.h"

namespace phalanx {
namespace {

// Writes a secret to a file that only its owner may read, in place of one that an earlier launcher has left.
void write_secret(const std::string& path, const std::string& secret) {
  ::unlink(path.c_str());
  const Descriptor file = create_new_file(path, 0600);
  const int problem = file.valid() ? write_all(file.get(), secret + "\n") : errno;
  if (problem != 0) throw Error(path + ": " + std::generic_category().message(problem));
}

std::string with_port(const std::string& host) {
  return (host.find(':') == host.npos ? host : "[" + host + "]") + ":0";
}

}  // namespace

JoinPort::JoinPort(const Options& options)
    : address_file_(std::filesystem::absolute(options.run_folder).lexically_normal() / "join.address") {
  const OwnAddress own = address_for_peers({.interface = wanted_interface(options.interface)});
  Descriptor socket = listen_at(with_port(own.text));
  address_ = address_of(socket.get());
  const std::string secret = options.secret ? *options.secret : random_text();
  if (!options.secret) {
    secret_file_ = std::filesystem::path(address_file_).replace_filename("join.secret");
    write_secret(secret_file_, secret);
  }
  listener_.emplace("the port at which hosts join", std::move(socket), join_protocol(), secret);
  write_atomically(address_file_, address_ + "\n");
}

JoinPort::~JoinPort() {
  for (const auto& file : {address_file_, secret_file_}) {
    if (!file.empty()) ::unlink(file.c_str());
  }
}

std::string JoinPort::invitation() const {
  return "Hosts may join with: " + (secret_file_.empty() ? "" : "PHALANX_JOB_SECRET_FILE=" + secret_file_ + " ") +
         "train --join " + address_;
}

std::optional<JoinPort::Peer> JoinPort::admit() {
  while (auto peer = listener_->next(std::chrono::steady_clock::now())) {
    try {
      JoinRequest request = parse_join_request(peer->claim);
      return Peer{.socket = std::move(peer->socket), .request = std::move(request)};
    } catch (const DataError& error) {
      log_warning() << "a host that knows the secret cannot join: " << error.what();
    }
  }
  return std::nullopt;
}

}  // namespace phalanx
