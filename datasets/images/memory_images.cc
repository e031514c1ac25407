// SPDX-License-Identifier: Apache-2.0
#include "datasets/images/memory_images.h"

#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include "datasets/images/transformed_images.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

class MemoryImages final : public ImageSource {
 public:
  MemoryImages(Images images, const std::vector<std::int64_t>& shape) : images_(std::move(images)), shape_(shape) {
    for (const auto length : shape_) bytes_ *= length;
    TORCH_CHECK(std::ssize(images_.pixels) == size() * bytes_, images_.pixels.size(), " pixels for ", size(),
                " images of ", bytes_);
  }

  std::int64_t size() const override { return std::ssize(images_.labels); }
  std::int64_t label(std::int64_t index) const override { return images_.labels.at(static_cast<std::size_t>(index)); }
  std::string name(std::int64_t index) const override { return "image " + std::to_string(index); }

  at::Tensor image(std::int64_t index) const override {
    // Callers do not write to the image.
    auto* pixels = const_cast<std::uint8_t*>(images_.pixels.data()) + index * bytes_;
    return at::from_blob(pixels, shape_, at::kByte);
  }

 private:
  Images images_;
  std::vector<std::int64_t> shape_;
  std::int64_t bytes_ = 1;
};

}  // namespace

std::shared_ptr<const Dataset> images_in_memory(Images images, const SampleSpec& spec,
                                                const MemoryImagesOptions& options) {
  if (options.transforms.empty()) {
    return std::make_shared<ImageDataset>(std::move(images), spec, options.statistics, options.augmentation);
  }
  if (options.augmentation.any()) {
    throw ConfigError(
        "dataset.augment: cannot be combined with dataset.transforms; it is the same as {transform: {name: "
        "random_crop, ...}} and {transform: flip}");
  }
  const auto& shape = spec.inputs.at(0).shape;
  return std::make_shared<TransformedImages>(
      std::make_shared<MemoryImages>(std::move(images), shape),
      TransformedImages::Options{
          .spec = spec, .statistics = options.statistics, .transforms = TransformChain(options.transforms)});
}

}  // namespace phalanx
