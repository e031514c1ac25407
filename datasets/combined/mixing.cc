// SPDX-License-Identifier: Apache-2.0
// Samples of another dataset, each mixed with a second one. The target is the share of each class:
//
//   mixup    x = s x_i + (1 - s) x_j                        (Zhang et al. 2017, arXiv:1710.09412)
//   cutmix   a rectangle of x_i is replaced by that part of x_j (Yun et al. 2019, arXiv:1905.04899; as in the authors'
//            code, the centre of the rectangle is anywhere in the image, and the rectangle is clipped to the image)
//
// target [n, classes] float32: s for the class of i, 1 - s for the class of j. s is drawn from Beta(alpha, alpha);
// cutmix rounds it to whole pixels. The papers pair the samples of a batch. Here j is drawn from the whole split as a
// function of (seed, sample), so that a sample does not depend on how ranks divide batches. This reads twice as many
// samples.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/combined/nested_dataset.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

constexpr std::uint64_t kMixing = 0x6d6978696e67;  // stream of a seed, far from the streams of samples

// Draws from Beta(alpha, alpha): M. D. Joehnk 1964, Erzeugung von betaverteilten und gammaverteilten Zufallszahlen.
double beta(double alpha, RandomStream& random) {
  for (;;) {
    const double x = std::pow(random.uniform(), 1 / alpha), y = std::pow(random.uniform(), 1 / alpha);
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
}

struct MixingConfig {
  NestedDataset of;
  double alpha = 1;
  double probability = 1;

  template <class V>
  void visit(V& v) {
    v("of", of, "dataset with classes whose training samples to mix");
    v("alpha", alpha, "shares are drawn from Beta(alpha, alpha); a small alpha leaves most samples nearly unchanged",
      config::between(0.05, 4));
    v("probability", probability, "probability that a sample is mixed", config::between(0, 1));
  }
};

class Mixing final : public Dataset {
 public:
  Mixing(std::shared_ptr<const Dataset> dataset, const MixingConfig& config, bool cut)
      : dataset_(std::move(dataset)), alpha_(config.alpha), probability_(config.probability), cut_(cut) {}

  std::int64_t size() const override { return dataset_->size(); }
  const SampleSpec& spec() const override { return dataset_->spec(); }
  bool samples_overlap() const override { return dataset_->samples_overlap(); }
  std::int64_t label(std::int64_t index) const override { return dataset_->label(index); }

  // Returns the samples without mixing or random changes, with class numbers as targets.
  std::shared_ptr<const Dataset> unchanged() const override {
    auto same = dataset_->unchanged();
    return same ? same : dataset_;
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    std::vector<std::int64_t> wanted(indices.begin(), indices.end());
    std::vector<RandomStream> random;
    std::vector<std::pair<std::int64_t, std::int64_t>> mixed;  // a row, and the row of its partner in `read`
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto index = indices[static_cast<std::size_t>(row)];
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      auto& draws = random.emplace_back(mix(mix(seed, kMixing), static_cast<std::uint64_t>(index)));
      if (draws.uniform() > probability_) continue;
      mixed.emplace_back(row, std::ssize(wanted));
      wanted.push_back(static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(size()))));
    }
    Batch read;
    dataset_->gather(wanted, seed, read);
    auto shape = read.inputs.at(0).sizes().vec();
    shape[0] = rows;
    const auto classes = spec().targets[0].classes;
    auto* out = ensure(batch.inputs, 0, shape, at::kFloat).data_ptr<float>();
    auto* shares = ensure(batch.targets, 0, std::array{rows, classes}, at::kFloat).data_ptr<float>();
    const auto elements = read.inputs[0].numel() / std::ssize(wanted);
    const auto* in = read.inputs[0].const_data_ptr<float>();
    const auto* labels = read.targets.at(0).const_data_ptr<std::int64_t>();
    std::copy_n(in, rows * elements, out);
    std::fill_n(shares, rows * classes, 0.0F);
    for (std::int64_t row = 0; row < rows; ++row) shares[row * classes + labels[row]] = 1;
    for (const auto& [row, partner] : mixed) {
      auto& draws = random[static_cast<std::size_t>(row)];
      const double share = beta(alpha_, draws);
      const double kept = cut_ ? paste(in + partner * elements, out + row * elements, share, draws)
                               : blend(in + partner * elements, out + row * elements, elements, share);
      shares[row * classes + labels[row]] = static_cast<float>(kept);
      shares[row * classes + labels[partner]] += static_cast<float>(1 - kept);
    }
  }

 private:
  static double blend(const float* other, float* out, std::int64_t elements, double share) {
    const auto own = static_cast<float>(share), others = static_cast<float>(1 - share);
    for (std::int64_t i = 0; i < elements; ++i) out[i] = own * out[i] + others * other[i];
    return share;
  }

  // Pastes a rectangle of `other` into `out`. Returns the share of pixels of `out` that remain.
  double paste(const float* other, float* out, double share, RandomStream& random) const {
    const auto& shape = spec().inputs[0].shape;
    const auto channels = shape[0], height = shape[1], width = shape[2];
    const double side = std::sqrt(1 - share);
    const auto part = [&](std::int64_t length) {
      const auto half = static_cast<std::int64_t>(static_cast<double>(length) * side) / 2;
      const auto middle = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(length)));
      return std::pair(std::max<std::int64_t>(0, middle - half), std::min(length, middle + half));
    };
    const auto [left, right] = part(width);
    const auto [top, bottom] = part(height);
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      for (auto y = top; y < bottom; ++y) {
        const auto at = (channel * height + y) * width;
        std::copy(other + at + left, other + at + right, out + at + left);
      }
    }
    return 1 - static_cast<double>((right - left) * (bottom - top)) / static_cast<double>(height * width);
  }

  std::shared_ptr<const Dataset> dataset_;
  double alpha_, probability_;
  bool cut_;
};

Splits make_mixing(const MixingConfig& config, bool cut) {
  Splits splits = config.of.make("of");
  const auto& spec = splits.train->spec();
  const bool numbers = spec.inputs.size() == 1 && spec.inputs[0].dtype == at::kFloat;
  const bool one_class = spec.targets.size() == 1 && spec.targets[0].shape.empty() && spec.targets[0].classes > 0;
  if (!numbers || !one_class || spec.targets[0].ignored || (cut && spec.inputs[0].shape.size() != 3)) {
    throw ConfigError(std::string("dataset.of: ") + (cut ? "cutmix needs images" : "mixup needs samples of numbers") +
                      " with one class each, which this dataset does not have");
  }
  splits.train = std::make_shared<Mixing>(splits.train, config, cut);
  return splits;
}

const bool mixup = add_dataset_without_files<MixingConfig>(
    "mixup", "training samples of another dataset, each blended with another sample",
    [](const MixingConfig& config) { return make_mixing(config, false); });
const bool cutmix = add_dataset_without_files<MixingConfig>(
    "cutmix", "training images of another dataset, each with a rectangle of another image",
    [](const MixingConfig& config) { return make_mixing(config, true); });

}  // namespace
}  // namespace phalanx
