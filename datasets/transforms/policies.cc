// SPDX-License-Identifier: Apache-2.0
// Transforms that choose other transforms: rand_augment (Cubuk et al. 2019, RandAugment, arXiv:1909.13719) and
// trivial_augment (Mueller and Hutter 2021, TrivialAugment, arXiv:2103.10158, its wide space), with torchvision's
// ranges of magnitudes.
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "datasets/transforms/draw.h"
#include "datasets/transforms/operations.h"
#include "datasets/transforms/transform.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

// A change with a strength from 0 to 1. `sign` is 1 or -1 and matters only for changes that have two directions.
struct Change {
  at::Tensor (*apply)(const at::Tensor& image, double strength, double sign);
};

// The effect of each change at full strength.
struct Ranges {
  double shear, translate, rotate, color;
  int fewest_bits;
};
constexpr Ranges kNarrow{.shear = 0.3, .translate = 150.0 / 331, .rotate = 30, .color = 0.9, .fewest_bits = 4};
constexpr Ranges kWide{.shear = 0.99, .translate = 32.0 / 224, .rotate = 135, .color = 0.99, .fewest_bits = 2};

template <const Ranges& ranges>
constexpr std::array<Change, 14> kChanges{{
    {[](const at::Tensor& image, double, double) { return image; }},
    {[](const at::Tensor& image, double strength, double sign) {
      return images::affine(image, {1, sign * strength * ranges.shear, 0, 0, 1, 0});
    }},
    {[](const at::Tensor& image, double strength, double sign) {
      return images::affine(image, {1, 0, 0, sign * strength * ranges.shear, 1, 0});
    }},
    {[](const at::Tensor& image, double strength, double sign) {
      const double pixels = strength * ranges.translate * static_cast<double>(image.size(2));
      return images::affine(image, {1, 0, sign * pixels, 0, 1, 0});
    }},
    {[](const at::Tensor& image, double strength, double sign) {
      const double pixels = strength * ranges.translate * static_cast<double>(image.size(1));
      return images::affine(image, {1, 0, 0, 0, 1, sign * pixels});
    }},
    {[](const at::Tensor& image, double strength, double sign) {
      return images::rotated(image, sign * strength * ranges.rotate);
    }},
    {[](const at::Tensor& image, double strength, double sign) {
      return images::with_brightness(image, 1 + sign * strength * ranges.color);
    }},
    {[](const at::Tensor& image, double strength, double sign) {
      return images::with_saturation(image, 1 + sign * strength * ranges.color);
    }},
    {[](const at::Tensor& image, double strength, double sign) {
      return images::with_contrast(image, 1 + sign * strength * ranges.color);
    }},
    {[](const at::Tensor& image, double strength, double sign) {
      return images::with_sharpness(image, 1 + sign * strength * ranges.color);
    }},
    {[](const at::Tensor& image, double strength, double) {
      return images::with_bits(image, 8 - static_cast<int>(strength * (8 - ranges.fewest_bits) + 0.5));
    }},
    {[](const at::Tensor& image, double strength, double) {
      return images::inverted_above(image, 255 * (1 - strength));
    }},
    {[](const at::Tensor& image, double, double) { return images::with_full_contrast(image); }},
    {[](const at::Tensor& image, double, double) { return images::equalized(image); }},
}};

at::Tensor apply_one(std::span<const Change> changes, const at::Tensor& image, double strength, RandomStream& random) {
  const auto chosen = random.below(changes.size());
  const double sign = random.below(2) == 0 ? 1 : -1;
  return changes[chosen].apply(image, strength, sign);
}

struct RandAugmentConfig {
  std::int64_t operations = 2;
  double magnitude = 9;

  template <class V>
  void visit(V& v) {
    v("operations", operations, "number of changes to each image, one after the other", config::between(1, 14));
    v("magnitude", magnitude, "strength of each change, from 0 to 30", config::between(0, 30));
  }
};

class RandAugment final : public Transform {
 public:
  explicit RandAugment(const RandAugmentConfig& config) : config_(config) {}

  at::Tensor apply(const at::Tensor& image, RandomStream& random) const override {
    at::Tensor result = image;
    for (std::int64_t i = 0; i < config_.operations; ++i) {
      result = apply_one(kChanges<kNarrow>, result, config_.magnitude / 30, random);
    }
    return result;
  }

 private:
  RandAugmentConfig config_;
};

class TrivialAugment final : public Transform {
 public:
  at::Tensor apply(const at::Tensor& image, RandomStream& random) const override {
    const double strength = draw(random, 0, 1);
    return apply_one(kChanges<kWide>, image, strength, random);
  }
};

const bool policies_registered =
    Transforms::global().add<RandAugmentConfig>(
        "rand_augment", "some of 14 changes of geometry and color, each of the same strength",
        [](const RandAugmentConfig& config) { return std::make_unique<const RandAugment>(config); }) &&
    Transforms::global().add<NoFields>("trivial_augment", "one of 14 changes of geometry and color, of random strength",
                                       [](const NoFields&) { return std::make_unique<const TrivialAugment>(); });

}  // namespace
}  // namespace phalanx
