// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/ps/client/client.h"
#include "framework/ps/sparse/sparse_cache.h"
#include "framework/ps/sparse/sparse_table.h"

namespace phalanx {

class Model;

/// The rows of a model that parameter servers hold. They are not parameters: the buckets, the optimizer and the
/// strategy of the dense part do not know of them.
///
/// The forward pass of a training step pulls the rows of its keys, each once, as a leaf of the graph. Backward stores
/// the gradient in the leaf, and push() sends it. In evaluation mode, rows are only read, neither created nor changed.
class ServedRows {
 public:
  virtual ~ServedRows() = default;

  /// Must be called before the first forward. `client` must live until disconnect(). `clients` is the number of clients
  /// that push in every step; their numbers start at 0.
  virtual void connect(ps::Client& client, std::int64_t clients) = 0;
  virtual void disconnect() = 0;

  /// Reads rows from a file (ps::RowsFile) instead of from servers, for evaluation only. Throws DataError if the file
  /// is missing or damaged, or has other embeddings.
  virtual void read_from(const std::string& path) = 0;

  /// Sends the gradients, times `share`, of all forwards in training mode since the last push, as this client's part of
  /// one step. `factor` is the factor of the learning-rate schedule, by which the rows' own learning rate is
  /// multiplied.
  virtual void push(double share, double factor) = 0;

  /// Waits until the servers have applied all pushed gradients.
  virtual void flush() = 0;

  /// Does the same and clears the cache, so that the next step reads from the servers, like a run that is resumed here.
  virtual void forget_cached() = 0;

  /// Returns true if the rows of the next batch should be prefetched. prefetch() pulls the rows of its ids while the
  /// current step computes, so they lack the gradients of this step.
  virtual bool prefetches() const = 0;
  virtual void prefetch(const at::Tensor& ids) = 0;

  virtual ps::SparseTable& table() = 0;

  virtual const ps::CachedSparseTable::Counts& counts() const = 0;
  virtual const std::vector<std::int64_t>& staleness_seen() const = 0;
};

/// Returns null if the model has no served rows.
ServedRows* served_rows_of(Model& model);

}  // namespace phalanx
