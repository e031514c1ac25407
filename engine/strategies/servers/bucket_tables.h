// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/strategies/servers/parameter_service.h"
#include "framework/base/metrics.h"
#include "framework/base/state_dict.h"
#include "framework/comm/operations/work.h"
#include "framework/partition/flat_parameters.h"
#include "framework/ps/client/client.h"
#include "framework/ps/protocol/element_ranges.h"

namespace phalanx {

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

  /// The values of all tables and the state of their rules, as in set().
  struct Contents {
    std::vector<at::Tensor> values;
    StateDict state;
  };

  /// Returns a function that reads the contents with a client of its own, which it makes with `options`. It may be
  /// called after this object is gone, when no rank uses the tables any more, and throws CommError.
  std::function<Contents()> reader(ps::ClientOptions options) const;

  /// Returns "pulls", "staleness_mean" and "staleness_max", where staleness is the number of clocks by which the
  /// slowest rank was behind when this rank read, and the nonzero entries of its histogram,
  /// "pulls_at_staleness_<clocks>", whose last entry, 63, counts all larger values. Appends the metrics of the servers.
  /// Blocks.
  Metrics metrics() const;

 private:
  static ps::Client::PushOptions of_bucket(ps::Client::PushOptions options,
                                           const std::vector<ps::ElementRanges>& unused, std::size_t bucket);

  ParameterService& service_;
  Contract contract_;
  StateDict remembered_;  // state of the rules for a table of two elements: [2], or [1] if a shard has one number
  std::vector<ps::Table> tables_;
  std::int64_t attached_ = 0;                                                             // number of calls
  std::vector<std::int64_t> reads_left_ = std::vector<std::int64_t>(ps::kStalenessBins);  // of former servers
};

}  // namespace phalanx
