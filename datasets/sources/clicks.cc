// SPDX-License-Identifier: Apache-2.0
// Generated clicks, as recommendation models see them: a click is predicted from numbers and from categorical ids of a
// key space that is far larger than the number of samples.
//
//   dense  [n, dense] float32, standard normal
//   ids    [n, features] int64 in [0, keys). The popularity of a feature's ids follows a Zipf distribution: the k-th
//          most popular id has a probability of about k^-zipf. The popular ids are spread over the key space
//   click  [n] float32, 0 or 1
//
// A click has the probability sigmoid(l) of a hidden model. l is the sum of one weight per id, the inner product of the
// latent factors of the first two ids (a user's and an item's), and a linear function of the dense numbers. Factors and
// weights are normal numbers, functions of (seed, feature, id), and sample i is a function of (seed, split, i), so
// nothing is stored.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "datasets/generated.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct ClicksConfig : GeneratedConfig {
  ClicksConfig() : GeneratedConfig{.train_samples = 100'000, .test_samples = 20'000} {}

  std::int64_t features = 8;
  std::int64_t keys = 100'000'000;
  std::int64_t dense = 4;
  double zipf = 1.2;

  template <class V>
  void visit(V& v) {
    visit_sizes(v);
    v("features", features, "categorical features; the first two are a user and an item", config::between(2, 1024));
    v("keys", keys, "number of ids that each of these can have", config::between(2, std::int64_t{1} << 40));
    v("dense", dense, "number of numeric features", config::between(1, 1024));
    v("zipf", zipf, "exponent of the popularity of ids", {.min = 1, .max = 4, .exclusive = true});
    visit_seed(v);
  }
};

enum Stream : std::uint64_t { kIds = 2, kWeights, kFactors, kDense };  // of the seed; 0 and 1 are the splits

constexpr int kFactorWidth = 4;
// Standard deviation of each part of the logit.
constexpr double kByIds = 1.5, kByPair = 1, kByDense = 0.5;

class Clicks final : public GeneratedDataset {
 public:
  Clicks(const ClicksConfig& config, Split split)
      : GeneratedDataset(
            {.inputs = {{.name = "dense", .shape = {config.dense}},
                        {.name = "ids", .shape = {config.features}, .dtype = at::kLong, .classes = config.keys}},
             .targets = {{.name = "click"}},
             .task = "binary_classification"},
            split),
        config_(config),
        seed_(static_cast<std::uint64_t>(config.seed)) {}

 private:
  void write(std::int64_t index, const Row& row) const override {
    auto* dense = row.input<float>(0);
    auto* ids = row.input<std::int64_t>(1);
    RandomStream stream(seed_of(index));
    for (std::int64_t i = 0; i < config_.dense; ++i) dense[i] = static_cast<float>(stream.normal());
    for (std::int64_t i = 0; i < config_.features; ++i) ids[i] = draw_id(i, stream);
    const double probability = 1 / (1 + std::exp(-logit(dense, ids)));
    *row.target<float>() = stream.uniform() <= probability ? 1 : 0;
  }

  // Inverts the distribution function of a Pareto variable truncated at `keys`. A shift and a multiplication by a prime
  // then permute the ids; the multiplication is one-to-one modulo any number that is not a multiple of the prime.
  std::int64_t draw_id(std::int64_t feature, RandomStream& stream) const {
    const double slope = 1 - config_.zipf, end = static_cast<double>(config_.keys) + 1;
    const double at = std::pow(1 + stream.uniform() * (std::pow(end, slope) - 1), 1 / slope);
    const auto keys = static_cast<std::uint64_t>(config_.keys);
    const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(at), 1, keys) - 1;
    const auto shift = mix(mix(seed_, kIds), static_cast<std::uint64_t>(feature)) % keys;
    constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
    return static_cast<std::int64_t>((static_cast<unsigned __int128>(rank + shift) * kPrime) % keys);
  }

  RandomStream hidden(Stream what, std::int64_t feature, std::int64_t id) const {
    return RandomStream(
        mix(mix(mix(seed_, what), static_cast<std::uint64_t>(feature)), static_cast<std::uint64_t>(id)));
  }

  double logit(const float* dense, const std::int64_t* ids) const {
    double by_ids = 0, by_pair = 0, by_dense = 0;
    for (std::int64_t i = 0; i < config_.features; ++i) {
      RandomStream weight = hidden(kWeights, i, ids[i]);
      by_ids += weight.normal();
    }
    RandomStream user = hidden(kFactors, 0, ids[0]), item = hidden(kFactors, 1, ids[1]);
    for (int i = 0; i < kFactorWidth; ++i) by_pair += user.normal() * item.normal();
    RandomStream slopes = hidden(kDense, 0, 0);
    for (std::int64_t i = 0; i < config_.dense; ++i) by_dense += slopes.normal() * dense[i];
    return kByIds * by_ids / std::sqrt(static_cast<double>(config_.features)) +
           kByPair * by_pair / std::sqrt(static_cast<double>(kFactorWidth)) +
           kByDense * by_dense / std::sqrt(static_cast<double>(config_.dense));
  }

  ClicksConfig config_;
  std::uint64_t seed_;
};

const bool clicks_registered = add_dataset_without_files<ClicksConfig>(
    "clicks", "generated clicks on ids of a large key space", generated_splits<Clicks, ClicksConfig>);

}  // namespace
}  // namespace phalanx
