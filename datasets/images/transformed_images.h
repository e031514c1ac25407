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

/// Images of a source, transformed, as
///   inputs[0]   float32 [n, channels, height, width], (pixel / 255 - mean) / deviation
///   targets[0]  int64 [n]
/// Rows are read by all threads that LibTorch has in the calling one; what is drawn for a sample depends on the seed
/// and its index alone, so batches do not depend on how many these are.
class TransformedImages final : public Dataset {
 public:
  struct Options {
    SampleSpec spec;                            // of classification: {channels, height, width}
    std::vector<ChannelStatistics> statistics;  // one, of all channels, or one for each
    TransformChain transforms;                  // after which every image has the shape of `spec`
    TransformChain plain{};                     // the same without chance, where `transforms` draw

    /// Images that cannot be read and are left out, over the life of the dataset; another is one too many. In its place
    /// comes the next one in the source that can be read, so that batches stay what they are on any number of ranks.
    std::int64_t skip = 0;
  };

  /// Throws ConfigError where there is neither one ChannelStatistics nor one for each channel.
  TransformedImages(std::shared_ptr<const ImageSource> source, Options options);

  std::int64_t size() const override { return source_->size(); }
  const SampleSpec& spec() const override { return options_.spec; }

  /// Throws DataError for an image that cannot be read, and std::invalid_argument for one that the transforms leave in
  /// another shape.
  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override;

  std::int64_t label(std::int64_t index) const override { return source_->label(index); }
  std::shared_ptr<const Dataset> unchanged() const override;

  std::int64_t skipped() const { return skipped_; }  // so far

 private:
  std::int64_t read(std::int64_t index, at::Tensor& image) const;
  at::Tensor transformed(const at::Tensor& image, std::int64_t index, std::uint64_t seed) const;
  void write(const at::Tensor& image, std::int64_t index, float* out) const;

  std::shared_ptr<const ImageSource> source_;
  Options options_;
  mutable std::atomic<std::int64_t> skipped_{0};
};

}  // namespace phalanx
