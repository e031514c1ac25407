// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/copies.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <utility>

#include "engine/checkpoint/memory_file.h"
#include "engine/checkpoint/restore.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

constexpr int kWeightsTag = 0, kStateTag = 1;

// The number of a rank's last copy, and the sizes of its share of the next one, in bytes.
struct Announcement {
  std::int64_t last = 0, weights = 0, state = 0;
};

constexpr std::int64_t kAnnounced = 3;

std::vector<Announcement> exchange(const Announcement& mine, Communicator& world) {
  const at::Tensor all = at::empty({world.size() * kAnnounced}, at::kLong);
  world.all_gather(all, at::tensor({mine.last, mine.weights, mine.state}, at::kLong)).wait();
  std::vector<Announcement> announced;
  const auto* row = all.const_data_ptr<std::int64_t>();
  for (int rank = 0; rank < world.size(); ++rank, row += kAnnounced) announced.push_back({row[0], row[1], row[2]});
  return announced;
}

// Returns a tensor of these bytes. The memory of the share lives as long as the tensor, which peers may still read
// after an error.
at::Tensor message_of(const std::shared_ptr<Snapshot>& share, std::string Snapshot::* file) {
  std::string& bytes = (*share).*file;
  return at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, [share](void*) {}, at::kByte);
}

std::int64_t bytes_in(const std::string& file) { return static_cast<std::int64_t>(file.size()); }

// The ranks that are left and have shares of a copy.
struct ShareHolders {
  int ranks = 0;                         // of the world in which it was taken
  std::map<int, std::vector<int>> of{};  // by the rank that took the share

  bool complete() const { return static_cast<int>(of.size()) == ranks; }
};

std::map<std::int64_t, ShareHolders, std::greater<>> gather_holders(const KeptCopies& kept, Communicator& world) {
  std::ostringstream mine;
  for (const auto& copy : kept) {
    if (copy.shares.empty()) continue;  // an earlier restore_copy() was interrupted before it had got any
    mine << copy.number << ' ' << copy.manifest.ranks << ' ' << copy.shares.size();
    for (const auto& [owner, share] : copy.shares) mine << ' ' << owner;
    mine << '\n';
  }
  std::map<std::int64_t, ShareHolders, std::greater<>> all;
  const auto texts = all_gather_text(mine.str(), world);
  for (int rank = 0; rank < world.size(); ++rank) {
    std::istringstream words(texts.at(static_cast<std::size_t>(rank)));
    std::int64_t number = 0;
    for (std::size_t shares = 0; words >> number;) {
      ShareHolders& holders = all[number];
      words >> holders.ranks >> shares;
      for (int owner = 0; shares > 0 && words >> owner; --shares) holders.of[owner].push_back(rank);
    }
  }
  return all;
}

// Returns this rank's copy with a number, which may have no shares yet.
Copy& copy_with(std::int64_t number, KeptCopies& kept) {
  const auto found = std::ranges::find(kept, number, &Copy::number);
  if (found != kept.end()) return *found;
  return kept.emplace_back(Copy{.number = number, .taken = std::chrono::steady_clock::now()});
}

// Sends the shares of a copy from one of their holders to all ranks, and restores from them.
void restore_shares(Copy& copy, const ShareHolders& holders, RunState& state, Communicator& world) {
  std::vector<MemoryFile> memory;
  SavedFiles files;
  for (const auto& [owner, ranks] : holders.of) {
    const int source = ranks.front();
    const auto own = copy.shares.find(owner);
    const Snapshot none;
    const Snapshot& mine = own == copy.shares.end() ? none : *own->second;
    Snapshot share{.weights = broadcast_text(mine.weights, world, source),
                   .state = broadcast_text(mine.state, world, source)};
    files.weights.emplace_back(memory.emplace_back(share.weights).path());
    files.state.emplace_back(memory.emplace_back(share.state).path());
    if (ranks.size() == 1) copy.shares.emplace(owner, std::make_shared<Snapshot>(std::move(share)));
  }
  restore(files, copy.manifest.updates, state);
}

// Returns the neighbour of each one of `hosts`, as neighbours_of() does for ranks that are lost one by one.
std::vector<int> next_ones(const std::vector<std::string>& hosts) {
  std::vector<std::string> names;  // of the hosts, in the order of their first ranks
  std::map<std::string, std::vector<int>> ranks_of;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (!ranks_of.contains(hosts[rank])) names.push_back(hosts[rank]);
    ranks_of[hosts[rank]].push_back(static_cast<int>(rank));
  }
  std::vector<int> neighbours(hosts.size());
  for (std::size_t host = 0; host < names.size(); ++host) {
    const auto& ranks = ranks_of.at(names[host]);
    const auto& next = ranks_of.at(names[(host + 1) % names.size()]);
    const std::size_t shift = names.size() == 1 ? 1 : 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      neighbours.at(static_cast<std::size_t>(ranks[i])) = next[(i + shift) % next.size()];
    }
  }
  return neighbours;
}

// Replaces the neighbours that share a host, which may be lost, by others that do not, if there are any. `hosts`: those
// of each replica.
void prefer_other_hosts(const std::vector<std::set<std::string>>& hosts, std::vector<int>& neighbours) {
  const auto apart = [&](std::size_t a, std::size_t b) {
    return std::ranges::none_of(hosts[a], [&](const auto& host) { return hosts[b].contains(host); });
  };
  for (std::size_t replica = 0; replica < hosts.size(); ++replica) {
    std::size_t next = static_cast<std::size_t>(neighbours.at(replica));
    for (std::size_t tried = 1; tried < hosts.size() && !apart(replica, next); ++tried) {
      next = (replica + tried) % hosts.size();
    }
    if (apart(replica, next)) neighbours.at(replica) = static_cast<int>(next);
  }
}

}  // namespace

std::vector<int> neighbours_of(const std::vector<std::string>& hosts, int ranks_per_replica) {
  const auto size = static_cast<std::size_t>(ranks_per_replica);
  std::vector<std::string> places(hosts.size() / size);  // the hosts of each replica
  std::vector<std::set<std::string>> used(places.size());
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    places.at(rank / size) += hosts[rank] + '\n';
    used[rank / size].insert(hosts[rank]);
  }
  auto next = next_ones(places);
  prefer_other_hosts(used, next);
  std::vector<int> neighbours;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    neighbours.push_back(next[rank / size] * ranks_per_replica + static_cast<int>(rank % size));
  }
  return neighbours;
}

Copies::Copies(CommunicatorPtr world, const RunState& state, KeptCopies& kept, int ranks_per_replica)
    : world_(std::move(world)),
      messages_(world_->split(0, world_->rank())),
      state_(state),
      plan_(make_plan(state, *world_)),
      kept_(kept) {
  const auto neighbours = neighbours_of(all_gather_text(host_key(), *world_), ranks_per_replica);
  neighbour_ = neighbours.at(static_cast<std::size_t>(world_->rank()));
  for (int owner = 0; owner < world_->size(); ++owner) {
    const bool mine = owner == world_->rank();
    if (!mine && neighbours.at(static_cast<std::size_t>(owner)) == world_->rank()) owners_.push_back(owner);
  }
}

// The copy goes into memory of its own, since the two before may still be needed until the exchange has shown that all
// ranks have the newer one.
void Copies::take(Manifest manifest, bool replicas_equal) {
  arrive();
  Copy copy{.manifest = std::move(manifest), .taken = std::chrono::steady_clock::now()};
  copy.manifest.ranks = world_->size();
  const auto own = memory_for(world_->rank());
  take_snapshot(state_, plan_, replicas_equal, *own);
  const std::int64_t last = kept_.empty() ? 0 : kept_.front().number;
  const auto all = exchange({last, bytes_in(own->weights), bytes_in(own->state)}, *world_);
  drop_older_copies();
  copy.number = 1 + std::ranges::max_element(all, {}, &Announcement::last)->last;
  copy.shares[world_->rank()] = own;
  if (neighbour_ != world_->rank()) {
    works_.push_back(messages_->send(message_of(own, &Snapshot::weights), neighbour_, kWeightsTag));
    works_.push_back(messages_->send(message_of(own, &Snapshot::state), neighbour_, kStateTag));
  }
  for (const int owner : owners_) {
    const auto& size = all.at(static_cast<std::size_t>(owner));
    const auto& share = copy.shares[owner] = memory_for(owner);
    share->weights.resize(static_cast<std::size_t>(size.weights));
    share->state.resize(static_cast<std::size_t>(size.state));
    works_.push_back(messages_->recv(message_of(share, &Snapshot::weights), owner, kWeightsTag));
    works_.push_back(messages_->recv(message_of(share, &Snapshot::state), owner, kStateTag));
  }
  next_ = std::move(copy);
}

void Copies::arrive() {
  if (!next_) return;
  Copy copy = *std::exchange(next_, std::nullopt);
  auto works = std::exchange(works_, {});
  wait_all(works);
  kept_.insert(kept_.begin(), std::move(copy));
}

void Copies::keep_what_arrives() {
  try {
    arrive();
  } catch (const CommError& error) {
    log_info() << "the newest copy is not complete: " << error.what();
  }
}

// Returns memory for the share of a rank, which is used again unless somebody still reads it.
std::shared_ptr<Snapshot> Copies::memory_for(int owner) {
  const auto spare = std::exchange(spare_[owner], nullptr);
  return spare.use_count() == 1 ? spare : std::make_shared<Snapshot>();
}

void Copies::drop_older_copies() {
  for (; kept_.size() > 1; kept_.pop_back()) {
    for (auto& [owner, share] : kept_.back().shares) spare_[owner] = std::move(share);
  }
}

const Copy* restore_copy(KeptCopies& kept, RunState& state, Communicator& world) {
  const auto all = gather_holders(kept, world);
  const auto newest = std::ranges::find_if(all, [](const auto& one) { return one.second.complete(); });
  if (newest == all.end()) return nullptr;
  const auto& [number, holders] = *newest;
  Copy& copy = copy_with(number, kept);
  const int source = holders.of.begin()->second.front();
  copy.manifest = parse_manifest(broadcast_text(to_text(copy.manifest), world, source), "the copy in memory");
  restore_shares(copy, holders, state, world);
  kept = KeptCopies{std::move(copy)};
  return &kept.front();
}

}  // namespace phalanx
