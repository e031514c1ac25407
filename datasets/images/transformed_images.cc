// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/transformed_images.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>

#include "datasets/batch_memory.h"
#include "datasets/read_sample.h"
#include "framework/base/console.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/random.h"

namespace phalanx {

TransformedImages::TransformedImages(std::shared_ptr<const ImageSource> source, Options options)
    : source_(std::move(source)), options_(std::move(options)) {
  const auto channels = static_cast<std::size_t>(options_.spec.inputs.at(0).shape.at(0));
  auto& statistics = options_.statistics;
  if (statistics.size() == 1) statistics.resize(channels, statistics[0]);
  if (statistics.size() == channels) return;
  throw ConfigError("dataset: mean and deviation need one number, or one for each of " + std::to_string(channels) +
                    " channels, but have " + std::to_string(statistics.size()));
}

// Reads image `index`, or the next readable one. Returns the index of the image that was read.
std::int64_t TransformedImages::read(std::int64_t index, at::Tensor& image) const {
  for (;; index = (index + 1) % size()) {
    try {
      image = read_sample(source_->name(index), [&] { return source_->image(index); });
      return index;
    } catch (const DataError& error) {
      const std::int64_t skipped = ++skipped_;
      if (skipped > options_.skip) {
        if (options_.skip == 0) throw;
        throw DataError(std::string(error.what()) + "; this is number " + std::to_string(options_.skip + 1) +
                        " of the images that cannot be read, and dataset.skip_corrupt allows " +
                        std::to_string(options_.skip));
      }
      log_warning() << "skipped an image that cannot be read: " << error.what();
      if (skipped == 1) {
        standard_error().write(
            "Warning: an image that cannot be read is skipped, and so are others, up to dataset.skip_corrupt; the log "
            "names them: " +
            std::string(error.what()) + "\n");
      }
    }
  }
}

at::Tensor TransformedImages::transformed(const at::Tensor& image, std::int64_t index, std::uint64_t seed) const {
  const std::string name = source_->name(index);
  try {
    return read_sample(name, [&] { return options_.transforms.apply(image, seed); });
  } catch (const DataError& error) {
    const std::string text = error.what();
    throw DataError(text.starts_with(name) ? text : name + ": " + text);
  }
}

void TransformedImages::write(const at::Tensor& image, std::int64_t index, float* out) const {
  const auto& shape = options_.spec.inputs[0].shape;
  if (image.sizes() != at::IntArrayRef(shape)) {
    throw std::invalid_argument("dataset.transforms leave " + source_->name(index) + " with " +
                                c10::str(image.sizes()) + " (channels, height, width), but a sample has " +
                                c10::str(at::IntArrayRef(shape)) +
                                "; end them with a crop to dataset.side, or a resize with square: true");
  }
  const auto plane = shape[1] * shape[2];
  for (std::int64_t channel = 0; channel < shape[0]; ++channel) {
    const auto [mean, deviation] = options_.statistics[static_cast<std::size_t>(channel)];
    at::Tensor row = at::from_blob(out + channel * plane, {shape[1], shape[2]}, at::kFloat);
    row.copy_(image[channel]);
    row.mul_(1 / (255 * deviation)).sub_(mean / deviation);
  }
}

std::shared_ptr<const Dataset> TransformedImages::unchanged() const {
  if (!options_.transforms.draws()) return nullptr;
  Options plain = options_;
  plain.transforms = options_.plain;
  return std::make_shared<TransformedImages>(source_, std::move(plain));
}

void TransformedImages::gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const {
  const auto rows = std::ssize(indices);
  const auto& shape = options_.spec.inputs[0].shape;
  auto* const input =
      ensure(batch.inputs, 0, std::array{rows, shape[0], shape[1], shape[2]}, at::kFloat).data_ptr<float>();
  auto* const target = ensure(batch.targets, 0, std::array{rows}, at::kLong).data_ptr<std::int64_t>();
  const auto elements = shape[0] * shape[1] * shape[2];
  // Images differ in cost and cores in load, so each thread takes the next row instead of a fixed part.
  std::atomic<std::int64_t> next{0};
  at::parallel_for(0, std::min<std::int64_t>(rows, at::get_num_threads()), 1, [&](std::int64_t, std::int64_t) {
    for (std::int64_t row = 0; (row = next++) < rows;) {
      const auto asked = indices[static_cast<std::size_t>(row)];
      TORCH_CHECK_INDEX(asked >= 0 && asked < size(), "sample ", asked, " is out of range; the size is ", size());
      at::Tensor image;
      const auto index = read(asked, image);
      image = transformed(image, index, mix(seed, static_cast<std::uint64_t>(asked)));
      write(image, index, input + row * elements);
      target[row] = source_->label(index);
    }
  });
}

}  // namespace phalanx
