// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "datasets/sample_order.h"

namespace phalanx {

/// The treatment of the samples at the end of an epoch that do not fill a global batch.
enum class LastBatch {
  kSmaller,  // the last batch is smaller
  kDrop,     // they are dropped
  kPad,      // the last batch is filled with the first samples of the epoch
};

/// Chooses the samples of a rank as a pure function of (seed, epoch, cursor, rank, size).
///
/// An epoch is one order of all samples, made from (seed, epoch) alone and equal on every platform. Global batch
/// `cursor` is the next `global_batch` samples of that order (fewer at the end). It is divided into P contiguous parts,
/// one for each of the P ranks; if P does not divide its size, the first parts are one sample longer. So the global
/// batches do not depend on the number of ranks, and every rank takes the same number of steps.
///
/// With `shares` s, the parts are proportional to s: the part of rank r begins at floor(n (s_0 + ... + s_{r-1}) / S) of
/// the n samples, where S is the sum of all shares.
///
/// With `skipped`, batch 0 begins after that many samples of the order, as in an epoch that was begun with batches of
/// another size. If nothing is left, an epoch has no batches.
///
/// With `order`, an epoch is that order, in which a sample may appear several times or never.
///
/// Not thread-safe. Holds one window of the order, 8 bytes per sample. Without `order`, the window is the whole epoch.
class BatchSampler {
 public:
  struct Options {
    std::int64_t samples = 0;       // in the dataset, > 0
    std::int64_t global_batch = 0;  // samples per step over all ranks, > 0
    std::int64_t seed = 0;
    bool shuffle = true;  // false: the dataset's own order in every epoch; ignored with `order`
    int rank = 0;         // 0 <= rank < size
    int size = 1;
    int parts = 0;  // contiguous parts of a global batch, of which each rank takes parts / size; 0: size

    // One share per rank, > 0; null: nearly equal parts, as above. All ranks may change it together between epochs.
    std::shared_ptr<const std::vector<std::int64_t>> shares{};

    std::shared_ptr<const SampleOrder> order{};  // null: every sample once
    LastBatch last = LastBatch::kSmaller;
    std::int64_t skipped = 0;  // samples at the start of each epoch's order that belong to no batch, >= 0
  };

  /// A rank's part of one global batch.
  struct Share {
    std::span<const std::int64_t> indices;  // never empty: a rank without samples gets one padding index
    std::int64_t valid = 0;                 // the first `valid` indices are samples, the others padding
    std::int64_t global_rows = 0;           // samples in the global batch
    std::int64_t first_row = 0;             // position of this share's first sample in the global batch
  };

  explicit BatchSampler(const Options& options);  // throws std::invalid_argument

  std::int64_t batches() const;  // global batches in an epoch, including a smaller last one if it is not dropped

  /// Returns the share of global batch `cursor` (0 <= cursor < batches()) of `epoch` (>= 0); throws std::out_of_range
  /// for others. The result is a view of the epoch's order, valid until the next call. Makes the windows that it needs.
  Share share(std::int64_t epoch, std::int64_t cursor) &;

 private:
  void fill(std::int64_t epoch, std::int64_t window);
  std::span<const std::int64_t> samples(std::int64_t epoch, std::int64_t begin, std::int64_t count);
  std::int64_t positions() const { return options_.order ? options_.order->size() : options_.samples; }
  std::int64_t begin_of(int rank, std::int64_t rows) const;  // first row of the rank's part of a global batch of `rows`

  Options options_;
  std::int64_t epoch_ = -1, window_ = -1;  // the epoch and the window that order_ holds
  std::vector<std::int64_t> order_;
  std::vector<std::int64_t> collected_;  // a share that spans several windows
};

}  // namespace phalanx
