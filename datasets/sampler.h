// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "datasets/sample_order.h"

namespace phalanx {

/// What an epoch does with samples that fill no global batch.
enum class LastBatch {
  kSmaller,  // the last one is smaller
  kDrop,     // it is left out
  kPad,      // it is filled with the samples that the epoch begins with
};

/// Which samples a rank takes, as a pure function of (seed, epoch, cursor, rank, size).
///
/// An epoch is one order of all samples, made from (seed, epoch) alone and equal on every platform. Global batch
/// `cursor` is the next `global_batch` samples of that order (fewer at the end), and rank r of P takes the r-th of P
/// contiguous parts of it, of which the first ones are one longer where P does not divide. So the global batches do not
/// depend on how many ranks there are, and every rank takes as many steps.
///
/// With `shares` s the parts are in proportion to these: that of rank r begins at floor(n (s_0 + ... + s_{r-1}) / S)
/// of the n samples, where S is the sum of all.
///
/// With an `order` of its own an epoch is that order, which may have samples several times or never.
///
/// Not thread-safe. Holds one window of the order, which without `order` is all of it: 8 bytes a sample.
class DistributedSampler {
 public:
  struct Options {
    std::int64_t samples = 0;       // in the dataset, > 0
    std::int64_t global_batch = 0;  // samples per step over all ranks, > 0
    std::int64_t seed = 0;
    bool shuffle = true;  // false: the dataset's own order in every epoch; without `order`
    int rank = 0;         // 0 <= rank < size
    int size = 1;
    int parts = 0;  // of a global batch, of which every rank takes as many, one behind the other; 0: size

    // Of each rank, > 0; null: nearly equal parts, as above. May change between epochs, on all ranks alike.
    std::shared_ptr<const std::vector<std::int64_t>> shares{};

    std::shared_ptr<const SampleOrder> order{};  // null: every sample once
    LastBatch last = LastBatch::kSmaller;
  };

  /// A rank's part of one global batch.
  struct Share {
    std::span<const std::int64_t> indices;  // never empty: a rank without samples gets one padding index
    std::int64_t valid = 0;                 // the first `valid` indices are samples
    std::int64_t global_rows = 0;           // samples in the global batch
    std::int64_t first_row = 0;             // number of the first one in it
  };

  explicit DistributedSampler(const Options& options);  // throws std::invalid_argument

  std::int64_t batches() const;  // global batches in an epoch, the last, smaller one included where it is not dropped

  /// The share of global batch `cursor` (0 <= cursor < batches()) of `epoch` (>= 0), else std::out_of_range. A view of
  /// the epoch's order, which lives until the next call. Makes the windows in which it lies, if it has not got them.
  Share share(std::int64_t epoch, std::int64_t cursor) &;

 private:
  void fill(std::int64_t epoch, std::int64_t window);
  std::span<const std::int64_t> samples(std::int64_t epoch, std::int64_t begin, std::int64_t count);
  std::int64_t positions() const { return options_.order ? options_.order->size() : options_.samples; }
  std::int64_t begin_of(int rank, std::int64_t rows) const;  // its part of a global batch of `rows`

  Options options_;
  std::int64_t epoch_ = -1, window_ = -1;  // that order_ is of
  std::vector<std::int64_t> order_;
  std::vector<std::int64_t> collected_;  // a share that does not lie in one window
};

}  // namespace phalanx
