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

/// The parameter servers of a strategy. These are the servers of the run (`roles`), if it has any; otherwise every rank
/// of the strategy's own group runs one, which serves while the rank trains.
class ParameterService {
 public:
  /// Collective.
  explicit ParameterService(const SyncContext& context);

  ps::Client& client() { return *client_; }

  /// Registers the function that moves the tables when the servers of the context change. `move` must first call
  /// follow_servers(). It is never called for servers that belong to the ranks.
  void on_change_of_servers(std::function<void()> move);

  /// Connects client() to the servers that the context has now, where this service has no tables yet. Returns the
  /// former client, whose servers still have the tables. Collective. Throws CommError if a server cannot be reached.
  std::unique_ptr<ps::Client> follow_servers();

  /// Destroys the former client and has its servers delete the tables. If they cannot, a warning is logged. Collective.
  void leave(std::unique_ptr<ps::Client> former);

  /// Returns Client::lost_updates(), summed with the counts from servers that the run has left.
  std::int64_t lost_updates() const { return lost_updates_ + client_->lost_updates(); }

  /// Returns what the servers have done so far for the tables of this service, for all clients: for server i,
  /// "server_<i>_requests", "server_<i>_bytes_received" and "server_<i>_bytes_sent". `prefix` comes before each name.
  /// Blocks.
  Figures figures_of_servers(const std::string& prefix) const;
  Communicator& group() { return *group_; }

 private:
  // Returns a client of `list` after this number of moves. The namespace of the tables differs between two consecutive
  // moves, since a server may be both in the former list and in the new one.
  std::unique_ptr<ps::Client> connect(const ps::ServerList& list, std::int64_t moves) const;

  // Does the same if an earlier start of the run may have left tables. Collective.
  std::unique_ptr<ps::Client> connect_anew(const ps::ServerList& list, std::int64_t moves) const;

  CommunicatorPtr group_;
  std::string owner_;  // of the tables; distinguishes the strategies that use the same servers
  Seconds timeout_;
  std::shared_ptr<ps::CurrentServers> servers_;  // null if every rank has a server
  std::unique_ptr<ps::Server> server_;           // of this rank; null if the run has its own servers
  std::unique_ptr<ps::Client> client_;
  std::int64_t moves_ = 0;
  std::int64_t lost_updates_ = 0;  // on servers that the run has left
};

/// A tensor on parameter servers for each bucket of a strategy.
class BucketTables {
 public:
  struct Contract {
    std::string name;                // unique in the service
    std::vector<std::string> rules;  // that pushes select from, by index
    std::int64_t staleness = ps::kAsynchronous;
  };

  BucketTables(ParameterService& service, Contract contract) : service_(service), contract_(std::move(contract)) {}

  /// Creates the tables with the values of the buckets, which must be the same on all ranks. Collective.
  void attach(const FlatParameters& parameters);

  /// Creates the tables again, filled with zeros, after ParameterService::follow_servers(). No request may be in
  /// flight. Collective.
  void follow();

  /// Sets the values on the servers to the values of rank 0, [n] for each bucket, and the state of the rules to
  /// `state`, which state_of_rules() has made, unless `state` is empty. Collective.
  void set(const std::vector<at::Tensor>& values, const StateDict& state = {});

  /// Launches the same request for every bucket, with one entry of `tensors` for each. Buckets are in the order of
  /// backward, so they are sent in reverse: the next forward needs the first layers first. `unused` is
  /// ps::UpdateInfo::unused of each bucket, or empty if all elements are used.
  std::vector<Work> push(const std::vector<at::Tensor>& tensors, const ps::Client::PushOptions& options,
                         const std::vector<ps::ElementRanges>& unused = {});
  std::vector<Work> pull(const std::vector<at::Tensor>& tensors);

  /// Launches a push followed by a pull for every bucket, in the same order. `prepare` fills a tensor before it is sent
  /// and `take` uses the values received in it; both run while other buckets are in flight. Blocks.
  using WithBucket = std::function<void(std::size_t bucket)>;
  void exchange(const std::vector<at::Tensor>& tensors, const ps::Client::PushOptions& options,
                const WithBucket& prepare, const WithBucket& take, const std::vector<ps::ElementRanges>& unused = {});

  /// Reads all values once the updates of all ranks have been applied, and the state of the rules into `state`, which
  /// state_of_rules() has made. Collective.
  void pull_last(const std::vector<at::Tensor>& tensors, const StateDict& state = {});

  /// Returns tensors for the state of the rules of all tables, after attach(). Each bucket has the same number of them,
  /// of shape [n], or [1] for state that a shard has only one number of.
  StateDict state_of_rules() const;
  void read_state(const StateDict& state);

  /// Returns "pulls", "staleness_mean" and "staleness_max", where staleness is the number of clocks by which the
  /// slowest rank was behind when this rank read, and the nonzero entries of its histogram,
  /// "pulls_at_staleness_<clocks>", whose last entry, 63, counts all larger values. Appends the figures of the servers.
  /// Blocks.
  Figures figures() const;

 private:
  static ps::Client::PushOptions of_bucket(ps::Client::PushOptions options,
                                           const std::vector<ps::ElementRanges>& unused, std::size_t bucket);

  template <class Launch>
  void for_each_state(const StateDict& state, const Launch& launch);

  ParameterService& service_;
  Contract contract_;
  StateDict remembered_;  // state of the rules for a table of two elements: [2], or [1] if a shard has one number
  std::vector<ps::Table> tables_;
  std::int64_t attached_ = 0;                                                               // number of calls
  std::vector<std::int64_t> reads_left_ = std::vector<std::int64_t>(ps::kStalenessPlaces);  // of former servers
};

}  // namespace phalanx
