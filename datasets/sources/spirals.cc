// SPDX-License-Identifier: Apache-2.0
// Generated points of the plane on spirals around the origin, one spiral per class.
#include <cmath>
#include <cstdint>
#include <numbers>

#include "datasets/generated.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct SpiralsConfig : GeneratedConfig {
  std::int64_t classes = 2;
  double turns = 1.5;
  double noise = 0.02;

  template <class V>
  void visit(V& v) {
    visit_sizes(v);
    v("classes", classes, "number of spirals", config::between(2, 1000));
    v("turns", turns, "turns of each spiral around the origin", config::above(0));
    v("noise", noise, "maximum distance of a point from its spiral, whose radius is 1", config::between(0, 1));
    visit_seed(v);
  }
};

class Spirals final : public GeneratedDataset {
 public:
  Spirals(const SpiralsConfig& config, Split split)
      : GeneratedDataset(classification_samples({2}, config.classes), split), config_(config) {}

  std::int64_t label(std::int64_t index) const override {
    RandomStream random(seed_of(index));
    return draw_label(random);
  }

 private:
  void write(std::int64_t index, const Row& row) const override {
    RandomStream random(seed_of(index));
    const auto label = draw_label(random);
    const auto noise = static_cast<float>(config_.noise);
    const float radius = random.between(0, 1);
    const auto angle = 2 * std::numbers::pi *
                       (config_.turns * static_cast<double>(radius) +
                        static_cast<double>(label) / static_cast<double>(config_.classes));
    auto* point = row.input<float>();
    point[0] = radius * static_cast<float>(std::cos(angle)) + random.between(-noise, noise);
    point[1] = radius * static_cast<float>(std::sin(angle)) + random.between(-noise, noise);
    *row.target<std::int64_t>() = label;
  }

  std::int64_t draw_label(RandomStream& random) const {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(config_.classes)));
  }

  SpiralsConfig config_;
};

const bool spirals_registered = add_dataset_without_files<SpiralsConfig>("spirals", "points on spirals in the plane",
                                                                         generated_splits<Spirals, SpiralsConfig>);

}  // namespace
}  // namespace phalanx
