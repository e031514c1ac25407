// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/sync/sync_context.h"
#include "engine/sync/synchronizer.h"
#include "framework/parallel/flat_parameters.h"
#include "framework/ps/client.h"
#include "framework/ps/current_servers.h"
#include "framework/ps/element_ranges.h"
#include "framework/ps/server.h"

namespace phalanx {

/// The parameter servers of a strategy: those that it is told of (`roles`), else one on
/// every rank of the strategy's own group, which serves while the rank trains.
class ParameterService {
 public:
  /// Collective.
  explicit ParameterService(const SyncContext& context);

  ps::Client& client() { return *client_; }

  /// `move` takes the tables along when the servers of the context change: it begins with follow_servers(). Of servers
  /// that belong to the ranks, never.
  void on_change_of_servers(std::function<void()> move);

  /// From now on client() is one of the servers that the context has now, where the service has no tables yet. Returns
  /// the former one, whose servers still have theirs. Collective. Throws CommError where a server cannot be reached.
  std::unique_ptr<ps::Client> follow_servers();

  /// Ends that one, and has its servers forget the tables; where they cannot, a warning is logged. Collective.
  void leave(std::unique_ptr<ps::Client> former);

  /// Client::lost_updates(), also of servers that were left.
  std::int64_t lost_updates() const { return lost_updates_ + client_->lost_updates(); }

  /// What servers have done for the tables of this service so far, whoever asked: of server i, "server_<i>_requests",
  /// "server_<i>_bytes_received" and "server_<i>_bytes_sent". `prefix` comes before each name. Blocks.
  Figures figures_of_servers(const std::string& prefix) const;
  Communicator& group() { return *group_; }

 private:
  // As a client of `list`, in the namespace of the tables after so many moves: no two that follow each other share one,
  // since a server may be among both the former ones and the new.
  std::unique_ptr<ps::Client> connect(const ps::ServerList& list, std::int64_t moves) const;

  // The same, where an earlier start of the run may have left tables. Collective.
  std::unique_ptr<ps::Client> connect_anew(const ps::ServerList& list, std::int64_t moves) const;

  CommunicatorPtr group_;
  std::string owner_;  // of the tables, among all strategies that use the servers
  Seconds timeout_;
  std::shared_ptr<ps::CurrentServers> servers_;  // null: every rank has one
  std::unique_ptr<ps::Server> server_;           // of this rank; null: the run has its own
  std::unique_ptr<ps::Client> client_;
  std::int64_t moves_ = 0;
  std::int64_t lost_updates_ = 0;  // on servers that were left
};

/// A tensor on parameter servers for each bucket of a strategy.
class BucketTables {
 public:
  struct Contract {
    std::string name;                // unique in the service
    std::vector<std::string> rules;  // that pushes choose from
    std::int64_t staleness = ps::kAsynchronous;
  };

  BucketTables(ParameterService& service, Contract contract) : service_(service), contract_(std::move(contract)) {}

  /// Makes the tables, with the values of the buckets, which are the same on all ranks. Collective.
  void attach(const FlatParameters& parameters);

  /// Makes the tables again, of zeros, after ParameterService::follow_servers(). Nothing is in flight. Collective.
  void follow();

  /// The values on the servers become these, [n] for each bucket, of rank 0, and what the rules remember becomes
  /// `state`, made by state_of_rules(), unless that is empty. Collective.
  void set(const std::vector<at::Tensor>& values, const StateDict& state = {});

  /// Launches the same request for every bucket; `tensors`: one for each. Those of the first layers, which the next
  /// forward needs first, come first: buckets are in the order of backward.
  /// `unused` is ps::UpdateInfo::unused of each bucket, or empty if all elements are used.
  std::vector<Work> push(const std::vector<at::Tensor>& tensors, const ps::Client::PushOptions& options,
                         const std::vector<ps::ElementRanges>& unused = {});
  std::vector<Work> pull(const std::vector<at::Tensor>& tensors);

  /// A push and then a pull of every bucket, in the same order. `prepare` fills a tensor before it leaves, `take` uses
  /// what has come back in it, both while other buckets are on their way. Blocks.
  using WithBucket = std::function<void(std::size_t bucket)>;
  void exchange(const std::vector<at::Tensor>& tensors, const ps::Client::PushOptions& options,
                const WithBucket& prepare, const WithBucket& take, const std::vector<ps::ElementRanges>& unused = {});

  /// Reads all values when every rank's updates have been applied, and what the rules remember into `state`, made by
  /// state_of_rules(). Collective.
  void pull_last(const std::vector<at::Tensor>& tensors, const StateDict& state = {});

  /// Room for what the rules of all tables remember, after attach(), bucket by bucket and as many of each: [n] or, of
  /// what a shard has one number of, [1].
  StateDict state_of_rules() const;
  void read_state(const StateDict& state);

  /// "pulls", "staleness_mean", "staleness_max": how many clocks the slowest rank was behind when this one read; and
  /// the histogram of that, "pulls_at_staleness_<clocks>", as far as it is not 0. Its last place, 63, counts all
  /// beyond. Then those of the servers. Blocks.
  Figures figures() const;

 private:
  static ps::Client::PushOptions of_bucket(ps::Client::PushOptions options,
                                           const std::vector<ps::ElementRanges>& unused, std::size_t bucket);

  template <class Launch>
  void for_each_state(const StateDict& state, const Launch& launch);

  ParameterService& service_;
  Contract contract_;
  StateDict remembered_;  // by the rules of a table, of two elements: [2], or [1] of what a shard has one number of
  std::vector<ps::Table> tables_;
  std::int64_t attached_ = 0;                                                               // times
  std::vector<std::int64_t> reads_left_ = std::vector<std::int64_t>(ps::kStalenessPlaces);  // of servers that were left
};

}  // namespace phalanx
