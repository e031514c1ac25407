// SPDX-License-Identifier: Apache-2.0
// Transforms that change colours: color_jitter, grayscale, erase. They correspond to torchvision's ColorJitter,
// RandomGrayscale and RandomErasing.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "datasets/transforms/draw.h"
#include "datasets/transforms/operations.h"
#include "datasets/transforms/transform.h"

namespace phalanx {
namespace {

struct ColorJitterConfig {
  double brightness = 0.4;
  double contrast = 0.4;
  double saturation = 0.4;
  double hue = 0;

  template <class V>
  void visit(V& v) {
    v("brightness", brightness, "factors of brightness are drawn from 1 - this to 1 + this", config::between(0, 1));
    v("contrast", contrast, "the same for contrast", config::between(0, 1));
    v("saturation", saturation, "the same for saturation", config::between(0, 1));
    v("hue", hue, "largest shift of the hue in either direction; 0.5: to the complementary hue",
      config::between(0, 0.5));
  }
};

// Changes brightness, contrast, saturation and hue in a random order.
class ColorJitter final : public Transform {
 public:
  explicit ColorJitter(const ColorJitterConfig& config) : config_(config) {}

  at::Tensor apply(const at::Tensor& image, RandomStream& random) const override {
    std::array order{0, 1, 2, 3};
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    const auto factor = [&](double spread) { return draw(random, 1 - spread, 1 + spread); };
    const double brightness = factor(config_.brightness), contrast = factor(config_.contrast),
                 saturation = factor(config_.saturation), hue = draw(random, -config_.hue, config_.hue);
    at::Tensor result = image;
    for (const int kind : order) {
      if (kind == 0 && config_.brightness > 0) result = images::with_brightness(result, brightness);
      if (kind == 1 && config_.contrast > 0) result = images::with_contrast(result, contrast);
      if (kind == 2 && config_.saturation > 0) result = images::with_saturation(result, saturation);
      if (kind == 3 && config_.hue > 0) result = images::with_hue(result, hue);
    }
    return result;
  }

 private:
  ColorJitterConfig config_;
};

struct ProbabilityConfig {
  double probability = 0.1;

  template <class V>
  void visit(V& v) {
    v("probability", probability, "share of the images that are changed", config::between(0, 1));
  }
};

class Grayscale final : public Transform {
 public:
  explicit Grayscale(const ProbabilityConfig& config) : probability_(config.probability) {}

  at::Tensor apply(const at::Tensor& image, RandomStream& random) const override {
    return draw(random, 0, 1) < probability_ ? images::with_saturation(image, 0) : image;
  }

 private:
  double probability_;
};

struct EraseConfig {
  double probability = 0.5;
  double smallest = 0.02;
  double largest = 0.33;

  template <class V>
  void visit(V& v) {
    v("probability", probability, "share of the images that are changed", config::between(0, 1));
    v("smallest", smallest, "smallest share of the area that is erased", config::between(0, 1));
    v("largest", largest, "largest share of the area that is erased", config::between(0, 1));
  }
};

// Zhong et al. 2017, Random Erasing Data Augmentation (arXiv:1708.04896), algorithm 1, filling with black.
class Erase final : public Transform {
 public:
  explicit Erase(const EraseConfig& config) : config_(config) {}

  at::Tensor apply(const at::Tensor& image, RandomStream& random) const override {
    if (draw(random, 0, 1) >= config_.probability) return image;
    const auto rows = image.size(1), columns = image.size(2);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double area = draw(random, config_.smallest, config_.largest) * static_cast<double>(rows * columns);
      const double ratio = std::exp(draw(random, std::log(0.3), std::log(1 / 0.3)));
      const auto height = std::llround(std::sqrt(area * ratio)), width = std::llround(std::sqrt(area / ratio));
      if (height >= rows || width >= columns) continue;
      const auto top = random.below(static_cast<std::uint64_t>(rows - height + 1)),
                 left = random.below(static_cast<std::uint64_t>(columns - width + 1));
      at::Tensor result = image.clone();
      result.narrow(1, static_cast<std::int64_t>(top), height)
          .narrow(2, static_cast<std::int64_t>(left), width)
          .zero_();
      return result;
    }
    return image;
  }

 private:
  EraseConfig config_;
};

template <class Made, class Config>
bool add_color(const char* name, const char* help) {
  return Transforms::global().add<Config>(name, help,
                                          [](const Config& config) { return std::make_unique<const Made>(config); });
}

const bool color_registered =
    add_color<ColorJitter, ColorJitterConfig>("color_jitter", "random brightness, contrast, saturation and hue") &&
    add_color<Grayscale, ProbabilityConfig>("grayscale", "some images made gray") &&
    add_color<Erase, EraseConfig>("erase", "a random rectangle made black in some images");

}  // namespace
}  // namespace phalanx
