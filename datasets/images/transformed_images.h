// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/image_dataset.h"
#include "datasets/images/image_source.h"
#include "datasets/transforms/transform.h"

namespace phalanx {

/// The transformed images of a source. gather() returns
///   inputs[0]   float32 [n, channels, height, width], (pixel / 255 - mean) / deviation
///   targets[0]  int64 [n]
/// Rows are read in parallel by as many threads as LibTorch uses in the calling thread. The random numbers of a sample
/// depend only on the seed and its index, so batches do not depend on the number of threads.
class TransformedImages final : public Dataset {
 public:
  struct Options {
    SampleSpec spec;                            // a classification spec with input {channels, height, width}
    std::vector<ChannelStatistics> statistics;  // one for all channels, or one for each
    TransformChain transforms;                  // turns every image into the shape of `spec`
    TransformChain plain{};                     // variant without random changes, if `transforms` has any

    /// Number of failed reads that are tolerated over the life of the dataset; one more throws. An unreadable image is
    /// replaced by the next readable one of the source, so that batches do not depend on the number of ranks.
    std::int64_t skip = 0;
  };

  /// Throws ConfigError unless there is one ChannelStatistics or one for each channel.
  TransformedImages(std::shared_ptr<const ImageSource> source, Options options);

  std::int64_t size() const override { return source_->size(); }
  const SampleSpec& spec() const override { return options_.spec; }

  /// Throws DataError for an image that cannot be read, and std::invalid_argument if the transforms give it another
  /// shape.
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override;

  std::int64_t label(std::int64_t index) const override { return source_->label(index); }
  std::shared_ptr<const Dataset> unchanged() const override;

  std::int64_t skipped() const { return skipped_; }  // failed reads so far

 private:
  std::int64_t read(std::int64_t index, at::Tensor& image) const;
  at::Tensor transformed(const at::Tensor& image, std::int64_t index, std::uint64_t seed) const;
  void write(const at::Tensor& image, std::int64_t index, float* out) const;

  std::shared_ptr<const ImageSource> source_;
  Options options_;
  mutable std::atomic<std::int64_t> skipped_{0};
};

}  // namespace phalanx
