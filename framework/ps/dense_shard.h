#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "framework/base/state_dict.h"
#include "framework/ps/clocks.h"
#include "framework/ps/table.h"
#include "framework/ps/update_rule.h"

namespace phalanx::ps {

/// One server's part of a dense table. Not thread-safe, and knows nothing of connections: for one thread, which carries
/// out one request after the other, so that every read is of one version.
class DenseShard {
 public:
  /// Zeroed. Throws ConfigError for rules that are unknown or do not suit the dtype.
  DenseShard(const TableSpec& spec, int shard, int shards);

  const TableSpec& spec() const { return spec_; }
  const at::Tensor& values() const { return values_; }  // [elements of the shard]
  std::int64_t version() const { return version_; }     // updates applied
  std::size_t rules() const { return rules_.size(); }

  struct Push {
    int client = 0;
    std::size_t rule = 0;
    std::int64_t based_on = 0;  // version that the client had read
    double scale = 1;
    bool ticks = false;
    std::int64_t clock = 0;
  };

  /// Applies an update, and lets go on who may read now.
  void push(const Push& push, const at::Tensor& update);

  /// Calls `read` with the shard's values as soon as the contract of the table lets a client of this clock read: at
  /// once, or in a later push() or leave(). `behind`: clocks that the slowest client is behind this one, at least 0.
  using Read = std::function<void(std::int64_t behind)>;
  void pull(int client, std::int64_t clock, Read read);

  /// Nobody waits for the client any more, and what it still waits for is forgotten.
  void leave(int client);

  /// How many reads there were, by `behind`; the last place counts all beyond.
  const std::vector<std::int64_t>& staleness_seen() const { return staleness_seen_; }
  std::size_t waiting() const { return waiting_.size(); }

  StateDict state();

 private:
  struct Waiting {
    int client;
    std::int64_t clock;
    Read read;
  };

  bool may_read(std::int64_t clock) const;
  void let_read(const Waiting& waiting);
  void let_all_read_that_may();

  TableSpec spec_;
  at::Tensor values_;
  std::vector<std::unique_ptr<UpdateRule>> rules_;
  Clocks clocks_;
  std::list<Waiting> waiting_;
  std::vector<std::int64_t> staleness_seen_;
  std::int64_t version_ = 0;
};

}  // namespace phalanx::ps
