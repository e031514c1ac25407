#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace phalanx {

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
/// Not thread-safe. Holds one order: 8 bytes a sample.
class DistributedSampler {
 public:
  struct Options {
    std::int64_t samples = 0;       // in the dataset, > 0
    std::int64_t global_batch = 0;  // samples per step over all ranks, > 0
    std::int64_t seed = 0;
    bool shuffle = true;  // false: the dataset's own order in every epoch
    int rank = 0;         // 0 <= rank < size
    int size = 1;
    int parts = 0;  // of a global batch, of which every rank takes as many, one behind the other; 0: size

    // Of each rank, > 0; null: nearly equal parts, as above. May change between epochs, on all ranks alike.
    std::shared_ptr<const std::vector<std::int64_t>> shares{};
  };

  /// A rank's part of one global batch.
  struct Share {
    std::span<const std::int64_t> indices;  // never empty: a rank without samples gets one padding index
    std::int64_t valid = 0;                 // the first `valid` indices are samples
    std::int64_t global_rows = 0;           // samples in the global batch
    std::int64_t first_row = 0;             // number of the first one in it
  };

  explicit DistributedSampler(const Options& options);  // throws std::invalid_argument

  std::int64_t batches() const;  // global batches in an epoch, the last, smaller one included

  /// The share of global batch `cursor` (0 <= cursor < batches()) of `epoch` (>= 0), else std::out_of_range. A view of
  /// the epoch's order, which lives until another epoch is asked for; only that makes a new order, O(samples).
  Share share(std::int64_t epoch, std::int64_t cursor) &;

 private:
  void order_for(std::int64_t epoch);
  std::int64_t begin_of(int rank, std::int64_t rows) const;  // its part of a global batch of `rows`

  Options options_;
  std::int64_t ordered_epoch_ = -1;  // the epoch that order_ is of
  std::vector<std::int64_t> order_;
};

}  // namespace phalanx
