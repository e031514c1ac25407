// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "datasets/loader.h"

namespace phalanx {

/// A loader that can continue within an epoch that was begun with batches of another size, where no batch of its own
/// begins.
class ContinuedLoader final : public Loader {
 public:
  /// Returns a loader whose epochs lack their first `skipped` samples (BatchSampler::Options::skipped).
  using Make = std::function<std::unique_ptr<Loader>(std::int64_t skipped)>;

  explicit ContinuedLoader(Make make) : make_(std::move(make)), whole_(make_(0)) {}

  /// Lets `epoch` lack its first `skipped` samples from the next start_epoch() on. Its batches are numbered from 0, and
  /// their number is returned, which is 0 if no sample is left. Epochs before it must not be started any more.
  std::int64_t skip(std::int64_t epoch, std::int64_t skipped) {
    rest_ = make_(skipped);
    epoch_ = epoch;
    return rest_->batches();
  }

  /// Returns the number of batches of an epoch from its start.
  std::int64_t batches() const override { return whole_->batches(); }

  void start_epoch(std::int64_t epoch, std::int64_t cursor) override {
    if (epoch != epoch_) rest_.reset();
    current().start_epoch(epoch, cursor);
  }

  bool next(Batch& batch) override { return current().next(batch); }

 private:
  Loader& current() { return rest_ ? *rest_ : *whole_; }

  Make make_;
  std::unique_ptr<Loader> whole_;
  std::unique_ptr<Loader> rest_;  // of the epoch epoch_; null: there is none, or it is over
  std::int64_t epoch_ = -1;
};

}  // namespace phalanx
