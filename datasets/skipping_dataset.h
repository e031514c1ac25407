// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "datasets/dataset.h"

namespace phalanx {

/// Wraps a dataset that may have unreadable samples. An unreadable sample is replaced by the next readable one,
/// whatever the number of ranks, and is reported once in the log with its file and offset. Copies and unchanged() share
/// the set of unreadable samples with this dataset.
class SkippingDataset final : public Dataset {
 public:
  /// `max_skipped` is the number of samples that may be unreadable. gather() throws DataError if there are more, or if
  /// no sample can be read.
  SkippingDataset(std::shared_ptr<const Dataset> dataset, std::int64_t max_skipped);

  std::int64_t size() const override { return dataset_->size(); }
  const SampleSpec& spec() const override { return dataset_->spec(); }
  bool samples_overlap() const override { return dataset_->samples_overlap(); }
  std::int64_t label(std::int64_t index) const override { return dataset_->label(index); }
  std::int64_t length(std::int64_t index) const override { return dataset_->length(index); }
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override;
  bool varies() const override { return dataset_->varies(); }
  std::shared_ptr<const Dataset> unchanged() const override;
  std::shared_ptr<const BatchChanges> changes() const override;

  std::int64_t skipped() const;                               // number of distinct samples that could not be read
  std::string first_reason() const;                           // its message names the file; empty if skipped() is 0
  std::int64_t replaced() const { return found_->replaced; }  // rows of batches that were filled with a replacement

 private:
  struct Found {
    std::atomic<std::int64_t> replaced{0};
    std::mutex mutex;  // guards the members below
    std::set<std::int64_t> unreadable;
    std::string first_reason;
  };

  void read_rows(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const;
  void gather_each(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const;
  std::int64_t replacement(std::int64_t index) const;
  void note(std::int64_t index, const char* why) const;

  std::shared_ptr<const Dataset> dataset_;
  std::int64_t max_skipped_;
  std::shared_ptr<Found> found_ = std::make_shared<Found>();
};

}  // namespace phalanx
