// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <vector>

#include "framework/ps/sparse_index.h"
#include "framework/ps/sparse_rows.h"
#include "framework/ps/sparse_table.h"

namespace phalanx::ps {

struct SparseCacheOptions {
  std::int64_t capacity = 1 << 16;  // rows, each with room for its update
  std::int64_t staleness = 0;       // clocks of this client; 0: nothing is cached
  double own_updates = 0;           // what is read of a row has its pending update, times its scale and this: 1 where
                                    // the rule is add, -1 where it is sgd; 0: own updates show once they were pushed
                                    // and the row is pulled again
};

/// A sparse table whose rows a client keeps for a while (HET: Miao et al. 2022, HET: Scaling out Huge Embedding Model
/// Training via Cache-enabled Distributed Framework, section 3). With s = `staleness`:
///
///   reads    a row pulled at clock c is read from the cache up to clock c + s
///   updates  those of a row are summed here; what was begun at clock c is pushed before this client's clock becomes
///            c + s + 1, or sooner: when the row is pulled anew or evicted, or the rule or the scale changes
///
/// Evicted are rows that were not used lately, and their updates are pushed. The table's own staleness comes on top.
///
/// With s = 0 every pull and push goes to the servers, as without a cache.
///
/// Not thread-safe. Errors of pushes under way are thrown by a later call, at the latest by flush().
class CachedSparseTable {
 public:
  /// `table` must outlive the cache, and be used by nobody else. Throws std::invalid_argument for options that make no
  /// sense.
  CachedSparseTable(SparseTable& table, const SparseCacheOptions& options);

  /// `rows`: as of SparseTable::pull(). Blocks for those that are not here.
  void pull(const at::Tensor& keys, const at::Tensor& rows);
  at::Tensor pull(const at::Tensor& keys);

  /// Updates of equal keys are summed. With a tick, the clock's.
  void push(const at::Tensor& keys, const at::Tensor& updates, const Client::PushOptions& options);

  /// Begins to pull those rows that are not here, or too old to be read at the next clock. With s = 0 it does nothing.
  void prefetch(const at::Tensor& keys);

  /// Pushes what is pending, and waits until all pushes are complete. Work that is not flushed is lost with the cache.
  void flush();

  /// The same, and forgets all rows: what is read next comes from the servers.
  void clear();

  std::int64_t clock() const { return table_.clock(); }

  struct Counts {
    std::int64_t hits = 0;    // rows read that were here, or on their way
    std::int64_t pulled = 0;  // from servers
    std::int64_t pushed = 0;  // to servers: each a sum of updates
    std::int64_t evicted = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  using Slot = SparseIndex::Slot;
  static constexpr std::int64_t kNever = -1;

  struct Entry {
    std::int64_t key = 0;
    std::int64_t pulled_at = 0;           // clock
    std::int64_t pending_since = kNever;  // clock
    std::uint64_t begun = 0;              // number of the pending update
  };

  // Rows on their way.
  struct Fetch {
    at::Tensor keys, rows;
    std::int64_t clock;
    SparseIndex wanted;  // places of the keys that were not pushed since
    Work work;
  };

  void start_fetch(const std::vector<std::int64_t>& keys);
  void wait_for(Fetch& fetch);
  void finish_fetches();
  void keep(std::int64_t key, const float* row, std::int64_t pulled_at);
  Slot make_room();
  void take_pending(Slot slot);
  void send_taken(bool tick);
  void send_all_pending();
  void finish_pushes(std::size_t most);
  bool readable(Slot slot, std::int64_t clock) const { return entries_[slot].pulled_at + options_.staleness >= clock; }

  SparseTable& table_;
  SparseCacheOptions options_;
  std::size_t dim_;
  SparseIndex index_;
  SparseRows rows_;             // values, then the pending update
  std::vector<Entry> entries_;  // by slot
  struct Begun {
    Slot slot;
    std::int64_t clock;
    std::uint64_t number;
  };
  bool is_pending(const Begun& begun) const {
    const Entry& entry = entries_[begun.slot];
    return entry.pending_since != kNever && entry.begun == begun.number;
  }
  std::uint64_t begun_ = 0;
  std::deque<Begun> pending_;  // in the order in which they were begun; some may have been pushed since
  Client::PushOptions pending_options_{};
  std::vector<std::int64_t> taken_keys_;  // of updates to be pushed
  std::vector<float> taken_;
  std::list<Fetch> fetches_;
  std::deque<Work> pushes_;
  Counts counts_;
};

}  // namespace phalanx::ps
