// SPDX-License-Identifier: Apache-2.0
// Transforms that move pixels: resize, center_crop, random_crop, random_resized_crop, flip, vertical_flip, rotate. They
// correspond to torchvision's transforms with the same names.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/transforms/draw.h"
#include "datasets/transforms/operations.h"
#include "datasets/transforms/transform.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct ResizeConfig {
  std::int64_t size = 256;
  bool square = false;

  template <class V>
  void visit(V& v) {
    v("size", size, "pixels of the shorter side", config::between(1, 1 << 16));
    v("square", square, "scale both sides to size, whatever the shape of the image");
  }
};

class Resize final : public Transform {
 public:
  explicit Resize(const ResizeConfig& config) : config_(config) {}

  at::Tensor apply(const at::Tensor& image, RandomStream&) const override {
    const auto height = image.size(1), width = image.size(2), size = config_.size;
    if (config_.square) return images::resized(image, size, size);
    const auto longer = [&](std::int64_t side, std::int64_t shorter) { return side * size / shorter; };
    if (height < width) return images::resized(image, size, longer(width, height));
    return images::resized(image, longer(height, width), size);
  }
  bool draws() const override { return false; }

 private:
  ResizeConfig config_;
};

struct SizeConfig {
  std::int64_t size = 224;

  template <class V>
  void visit(V& v) {
    v("size", size, "pixels of each side", config::between(1, 1 << 16));
  }
};

class CenterCrop final : public Transform {
 public:
  explicit CenterCrop(const SizeConfig& config) : size_(config.size) {}

  at::Tensor apply(const at::Tensor& image, RandomStream&) const override {
    const auto begin = [&](std::int64_t side) {
      return static_cast<std::int64_t>(std::floor(static_cast<double>(side - size_) / 2 + 0.5));
    };
    return images::cut(image, begin(image.size(1)), begin(image.size(2)), size_, size_);
  }
  bool draws() const override { return false; }

 private:
  std::int64_t size_;
};

struct RandomCropConfig {
  std::int64_t size = 32;
  std::int64_t padding = 0;

  template <class V>
  void visit(V& v) {
    v("size", size, "pixels of each side", config::between(1, 1 << 16));
    v("padding", padding, "black pixels added on each side before the crop", config::between(0, 1 << 16));
  }
};

class RandomCrop final : public Transform {
 public:
  explicit RandomCrop(const RandomCropConfig& config) : config_(config) {}

  at::Tensor apply(const at::Tensor& image, RandomStream& random) const override {
    const auto begin = [&](std::int64_t side) {
      const auto places = std::max<std::int64_t>(side + 2 * config_.padding - config_.size, 0) + 1;
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(places))) - config_.padding;
    };
    const auto top = begin(image.size(1)), left = begin(image.size(2));
    return images::cut(image, top, left, config_.size, config_.size);
  }

 private:
  RandomCropConfig config_;
};

struct RandomResizedCropConfig {
  std::int64_t size = 224;
  std::vector<double> scale{0.08, 1};
  std::vector<double> ratio{0.75, 4.0 / 3};

  template <class V>
  void visit(V& v) {
    v("size", size, "pixels of each side", config::between(1, 1 << 16));
    v("scale", scale, "smallest and largest share of the image's area that is cut out", config::above(0));
    v("ratio", ratio, "smallest and largest ratio of width to height of what is cut out", config::above(0));
  }
};

// Szegedy et al. 2014, Going Deeper with Convolutions, section 6.
class RandomResizedCrop final : public Transform {
 public:
  explicit RandomResizedCrop(const RandomResizedCropConfig& config) : config_(config) {
    const auto require = [](const std::vector<double>& range, const std::string& key) {
      if (range.size() == 2 && range[0] <= range[1]) return;
      throw ConfigError("transform random_resized_crop: " + key + " needs two numbers, the smaller one first");
    };
    require(config.scale, "scale");
    require(config.ratio, "ratio");
  }

  at::Tensor apply(const at::Tensor& image, RandomStream& random) const override {
    const auto [height, width] = choose(image.size(1), image.size(2), random);
    const auto begin = [&](std::int64_t side, std::int64_t part) {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(side - part + 1)));
    };
    const auto top = begin(image.size(1), height), left = begin(image.size(2), width);
    return images::resized(images::cut(image, top, left, height, width), config_.size, config_.size);
  }

 private:
  // Returns height and width of the crop. After ten draws that do not fit, returns the largest part of the image whose
  // ratio is in range.
  std::pair<std::int64_t, std::int64_t> choose(std::int64_t height, std::int64_t width, RandomStream& random) const {
    const auto area = static_cast<double>(height * width);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double part = area * draw(random, config_.scale[0], config_.scale[1]);
      const double ratio = std::exp(draw(random, std::log(config_.ratio[0]), std::log(config_.ratio[1])));
      const auto w = std::llround(std::sqrt(part * ratio)), h = std::llround(std::sqrt(part / ratio));
      if (w > 0 && h > 0 && w <= width && h <= height) return {h, w};
    }
    const double ratio = static_cast<double>(width) / static_cast<double>(height);
    if (ratio < config_.ratio[0]) {
      return {std::clamp<std::int64_t>(std::llround(static_cast<double>(width) / config_.ratio[0]), 1, height), width};
    }
    if (ratio > config_.ratio[1]) {
      return {height, std::clamp<std::int64_t>(std::llround(static_cast<double>(height) * config_.ratio[1]), 1, width)};
    }
    return {height, width};
  }

  RandomResizedCropConfig config_;
};

struct FlipConfig {
  double probability = 0.5;

  template <class V>
  void visit(V& v) {
    v("probability", probability, "share of the images that are flipped", config::between(0, 1));
  }
};

class Flip final : public Transform {
 public:
  Flip(double probability, std::int64_t dim) : probability_(probability), dim_(dim) {}

  at::Tensor apply(const at::Tensor& image, RandomStream& random) const override {
    return draw(random, 0, 1) < probability_ ? image.flip({dim_}) : image;
  }

 private:
  double probability_;
  std::int64_t dim_;
};

struct RotateConfig {
  double degrees = 15;

  template <class V>
  void visit(V& v) {
    v("degrees", degrees, "largest angle in either direction", config::between(0, 180));
  }
};

class Rotate final : public Transform {
 public:
  explicit Rotate(const RotateConfig& config) : degrees_(config.degrees) {}

  at::Tensor apply(const at::Tensor& image, RandomStream& random) const override {
    return images::rotated(image, draw(random, -degrees_, degrees_));
  }

 private:
  double degrees_;
};

template <class Made, class Config>
bool add_geometry(const char* name, const char* help) {
  return Transforms::global().add<Config>(name, help,
                                          [](const Config& config) { return std::make_unique<const Made>(config); });
}

bool add_flip(const char* name, const char* help, std::int64_t dim) {
  return Transforms::global().add<FlipConfig>(
      name, help, [dim](const FlipConfig& config) { return std::make_unique<const Flip>(config.probability, dim); });
}

const bool geometry_registered =
    add_geometry<Resize, ResizeConfig>("resize", "scaled to another size, antialiased") &&
    add_geometry<CenterCrop, SizeConfig>("center_crop", "the square in the middle; black where the image is smaller") &&
    add_geometry<RandomCrop, RandomCropConfig>("random_crop", "a square at a random place") &&
    add_geometry<RandomResizedCrop, RandomResizedCropConfig>("random_resized_crop",
                                                             "a random part of the image, as a square of this size") &&
    add_flip("flip", "left and right exchanged in some images", 2) &&
    add_flip("vertical_flip", "top and bottom exchanged in some images", 1) &&
    add_geometry<Rotate, RotateConfig>("rotate", "turned by a random angle; black outside");

}  // namespace
}  // namespace phalanx
