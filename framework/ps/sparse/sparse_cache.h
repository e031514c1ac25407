// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <vector>

#include "framework/ps/sparse/sparse_index.h"
#include "framework/ps/sparse/sparse_rows.h"
#include "framework/ps/sparse/sparse_table.h"

namespace phalanx::ps {

struct SparseCacheOptions {
  std::int64_t capacity = 1 << 16;  // rows, each with room for its update
  std::int64_t staleness = 0;       // in clocks of this client; 0: nothing is cached
  double own_updates = 0;           // a read adds the row's pending update, times its scale and this factor: 1 for
                                    // rule add, -1 for sgd; 0: own updates become visible once they have been
                                    // pushed and the row is pulled again
};

/// A client's cache of the rows of a sparse table (HET: Miao et al. 2022, HET: Scaling out Huge Embedding Model
/// Training via Cache-enabled Distributed Framework, section 3). With s = `staleness`:
///
///   reads    a row pulled at clock c is read from the cache up to clock c + s
///   updates  the updates of a row are summed here; a sum begun at clock c is pushed before this client's clock becomes
///            c + s + 1, or earlier, when the row is pulled again or evicted, or when the rule or the scale changes
///
/// Rows that have not been used recently are evicted; their updates are pushed. The table's own staleness comes on top.
///
/// With s = 0, every pull and push goes to the servers, as without a cache.
///
/// Not thread-safe. The error of a pending push is thrown by a later call, at the latest by flush().
class CachedSparseTable {
 public:
  /// `table` must outlive the cache and must not be used by anyone else. Throws std::invalid_argument for invalid
  /// options.
  CachedSparseTable(SparseTable& table, const SparseCacheOptions& options);

  /// Fills `rows` as SparseTable::pull() does. Blocks until rows that are not in the cache have been pulled.
  void pull(const at::Tensor& keys, const at::Tensor& rows);
  at::Tensor pull(const at::Tensor& keys);

  /// Adds updates; updates of equal keys are summed. With a tick, these are the last updates of the current clock.
  void push(const at::Tensor& keys, const at::Tensor& updates, const Client::PushOptions& options);

  /// Starts to pull the rows that are not in the cache or are too old to be read at the next clock. Does nothing if s
  /// is 0.
  void prefetch(const at::Tensor& keys);

  /// Pushes all pending updates and waits until all pushes are complete. Updates that are not flushed are lost with the
  /// cache.
  void flush();

  /// Does the same as flush(), and removes all rows from the cache, so that later reads go to the servers.
  void clear();

  std::int64_t clock() const { return table_.clock(); }

  struct Counts {
    std::int64_t hits = 0;    // rows read that were in the cache or being fetched
    std::int64_t pulled = 0;  // rows pulled from servers
    std::int64_t pushed = 0;  // rows pushed to servers, each with a sum of updates
    std::int64_t evicted = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  using Slot = SparseIndex::Slot;
  static constexpr std::int64_t kNever = -1;

  struct Entry {
    std::int64_t key = 0;
    std::int64_t pulled_at = 0;           // clock of the pull
    std::int64_t pending_since = kNever;  // clock of the first pending update
    std::uint64_t begun = 0;              // number of the pending update
  };

  // Rows that are being fetched.
  struct Fetch {
    at::Tensor keys, rows;
    std::int64_t clock;
    SparseIndex wanted;  // places of the keys that have not been pushed since
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
  SparseRows rows_;             // values, followed by the pending update
  std::vector<Entry> entries_;  // indexed by slot
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
  std::deque<Begun> pending_;  // in the order in which they began; some may have been pushed already
  Client::PushOptions pending_options_{};
  std::vector<std::int64_t> taken_keys_;  // keys of the updates that will be pushed next
  std::vector<float> taken_;
  std::list<Fetch> fetches_;
  std::deque<Work> pushes_;
  Counts counts_;
};

}  // namespace phalanx::ps
