// SPDX-License-Identifier: Apache-2.0
#include "models/image_sample.h"

#include <algorithm>

#include "models/refuse_sample.h"

namespace phalanx {
namespace {

ImageSample checked(const std::string& model, const std::string& shown, const ModelSpec& spec, std::int64_t smallest) {
  const auto [input, output] = one_to_one(model, spec);
  const bool image = input.shape.size() == 3 && input.dtype == at::kFloat;
  if (!image || input.shape[1] < smallest || input.shape[2] < smallest) {
    const auto side = std::to_string(smallest);
    refuse_sample(shown, "images [channels, height, width] of at least " + side + " x " + side + " pixels", input);
  }
  return {.channels = input.shape[0],
          .height = input.shape[1],
          .width = input.shape[2],
          .classes = classes_of(model, output)};
}

constexpr std::int64_t kLarge = 64;  // pixels

}  // namespace

ImageSample image_sample(const std::string& model, const ModelSpec& spec, std::int64_t smallest) {
  return checked(model, model, spec, smallest);
}

bool Stem::large(const std::string& model, const ModelSpec& spec, Smallest smallest, ImageSample& sample) const {
  const auto& shape = one_to_one(model, spec).input.shape;
  const bool large_image = shape.size() == 3 && std::min(shape[1], shape[2]) >= kLarge;
  const bool imagenet = stem == "imagenet" || (stem == "auto" && large_image);
  const auto shown = model + " with stem " + (imagenet ? "imagenet" : "small");
  sample = checked(model, shown, spec, imagenet ? smallest.imagenet : smallest.small);
  return imagenet;
}

}  // namespace phalanx
