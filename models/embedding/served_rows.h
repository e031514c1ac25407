// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ps/client.h"
#include "framework/ps/sparse_cache.h"
#include "framework/ps/sparse_table.h"

namespace phalanx {

class Model;

/// The rows of a model that parameter servers hold. They are no parameters: no bucket, optimizer or strategy of the
/// dense part knows of them.
///
/// A training step's forward pulls the rows of its keys, each once, as a leaf of the graph; backward leaves its
/// gradient there, and push() sends it. In evaluation mode rows are read, and neither created nor changed.
class ServedRows {
 public:
  virtual ~ServedRows() = default;

  /// Before the first forward. `client` must live until disconnect(); `clients`: those numbered from 0 that push in
  /// every step.
  virtual void connect(ps::Client& client, std::int64_t clients) = 0;
  virtual void disconnect() = 0;

  /// In place of connect(), for evaluation alone: rows are those of a file (ps::RowsFile). Throws DataError where it is
  /// missing, damaged, or of other embeddings.
  virtual void read_from(const std::string& path) = 0;

  /// Sends the gradients, times `share`, of all forwards in training mode since the last push, as this client's part of
  /// one step. `factor`: of the schedule, times the rows' own learning rate.
  virtual void push(double share, double factor) = 0;

  /// Waits until the servers have applied all that was pushed.
  virtual void flush() = 0;

  /// The same, and what the next step reads comes from the servers: as a run goes on that was interrupted here.
  virtual void forget_cached() = 0;

  /// Returns true if rows of the next batch are to be pulled ahead; prefetch() pulls those of its ids while the present
  /// step computes, so they lack the step's gradients.
  virtual bool prefetches() const = 0;
  virtual void prefetch(const at::Tensor& ids) = 0;

  virtual ps::SparseTable& table() = 0;

  virtual const ps::CachedSparseTable::Counts& counts() const = 0;
  virtual const std::vector<std::int64_t>& staleness_seen() const = 0;
};

/// Null where the model has none.
ServedRows* served_rows_of(Model& model);

}  // namespace phalanx
