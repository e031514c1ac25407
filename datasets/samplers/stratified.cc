// SPDX-License-Identifier: Apache-2.0
// Every sample once, such that any part of an epoch has the classes in the overall proportions. The samples of a class
// are shuffled for each epoch. The k-th of the n samples of a class is placed at (k + u) / n of the epoch, with u in
// [0, 1) drawn for the class. If a class has m of the N samples and there are C classes, a batch of B samples has B m /
// N samples of the class, give or take 2 (1 + C m / N).
#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "datasets/samplers/whole_order.h"
#include "datasets/shuffle.h"
#include "framework/base/config/no_fields.h"

namespace phalanx {
namespace {

class Stratified final : public WholeOrder {
 public:
  Stratified(const std::vector<std::int64_t>& labels, std::int64_t classes, std::int64_t seed)
      : WholeOrder(std::ssize(labels)), seed_(seed), members_(static_cast<std::size_t>(classes)) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      members_.at(static_cast<std::size_t>(labels[i])).push_back(static_cast<std::int64_t>(i));
    }
  }

  void fill(std::int64_t epoch, std::int64_t, std::vector<std::int64_t>& samples) const override {
    std::vector<std::tuple<double, std::size_t, std::int64_t>> placed;  // position, class, sample
    placed.reserve(static_cast<std::size_t>(size()));
    for (std::size_t c = 0; c < members_.size(); ++c) {
      auto order = members_[c];
      const auto seed = mix(epoch_seed(seed_, epoch), c);
      shuffle(order, RandomStream(seed));
      RandomStream random(mix(seed, 1));
      const double offset = random.between(0, 1);
      for (std::size_t k = 0; k < order.size(); ++k) {
        placed.emplace_back((static_cast<double>(k) + offset) / static_cast<double>(order.size()), c, order[k]);
      }
    }
    std::ranges::sort(placed);
    samples.clear();
    for (const auto& [where, c, sample] : placed) samples.push_back(sample);
  }

 private:
  std::int64_t seed_;
  std::vector<std::vector<std::int64_t>> members_;  // samples of each class
};

const bool stratified_registered = Samplers::global().add<NoFields>(
    "stratified", "every sample once, with the classes in the same proportions in every batch",
    [](const NoFields&, const SampleOrderInput& input) {
      const auto labels = labels_of(input.dataset, "stratified");
      return std::make_shared<Stratified>(labels, input.dataset.spec().targets[0].classes, input.seed);
    });

}  // namespace
}  // namespace phalanx
