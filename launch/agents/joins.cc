// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/joins.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/printable.h"
#include "launch/local/print_to_console.h"
#include "launch/rank/same_start.h"

namespace phalanx {
namespace {

std::string described(const std::map<std::string, std::string>& versions) {
  std::string text;
  for (const auto& [name, version] : versions) text += (text.empty() ? "" : " and ") + name + " " + version;
  return text;
}

}  // namespace

Joins::Joins(const HostRanks& ranks, Options options)
    : ranks_(ranks), options_(std::move(options)), port_(options_.port), token_(random_text()) {
  write_atomically(options_.token_file, token_);
}

void Joins::look() {
  if (auto peer = port_.admit()) take(*std::move(peer));
}

// Returns why a host cannot join; empty: it can.
std::string Joins::why_not(const JoinRequest& request) const {
  const auto own = program_versions();
  if (request.versions != own) {
    return "the job has " + described(own) + ", but " + request.host + " has " + described(request.versions) +
           "; install the same versions";
  }
  if (room() <= 0) {
    const int expected = options_.expected();
    return "the job has " + std::to_string(ranks_.running()) + " ranks" +
           (expected > 0 ? ", soon " + std::to_string(ranks_.running() + expected) : "") +
           ", and no more may join (faults.max_ranks: " + std::to_string(options_.max_ranks) + ")";
  }
  if (joined_ >= kMostJoined)
    return std::to_string(joined_) + " ranks have joined this job already, which is the limit";
  return "";
}

void Joins::take(JoinPort::Peer peer) {
  JoinRequest& request = peer.request;
  request.host = printable(request.host);
  const std::string refusal = why_not(request);
  if (!refusal.empty()) return refuse(peer, refusal);
  request.ranks = std::min({request.ranks, room(), kMostJoined - joined_});
  try {
    JoinAnswer answer = options_.answer();
    answer.token_file = options_.token_file;
    answer.token = token_;
    options_.join(request, peer.socket, to_text(answer));
  } catch (const Error& error) {  // the job goes on without this host
    return refuse(peer, error.what());
  }
  joined_ += request.ranks;
  print_to_console("Host " + request.host + " joins, with ranks: " + std::to_string(request.ranks));
}

void Joins::refuse(const JoinPort::Peer& peer, const std::string& why) {
  print_to_console("Host " + peer.request.host + " cannot join: " + why);
  const std::string text = to_text(JoinAnswer{.refusal = why});  // fits into the buffer of a new connection
  (void)::send(peer.socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace phalanx
