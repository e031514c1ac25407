// SPDX-License-Identifier: Apache-2.0
// Every sample once, in batches of similar lengths. Samples are shuffled, divided by length into buckets of equal size,
// and cut into batches, almost all of which lie in one bucket. Then the batches are shuffled. A smaller last batch
// stays the last one.
#include <algorithm>
#include <memory>
#include <numeric>

#include "datasets/samplers/whole_order.h"
#include "datasets/shuffle.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct BucketedConfig {
  std::int64_t buckets = 8;

  template <class V>
  void visit(V& v) {
    v("buckets", buckets, "number of parts of equal size, by length; most batches are from one part",
      config::between(1, 1 << 20));
  }
};

class Bucketed final : public WholeOrder {
 public:
  Bucketed(const std::vector<std::int64_t>& lengths, std::int64_t buckets, std::int64_t batch, std::int64_t seed)
      : WholeOrder(std::ssize(lengths)), batch_(batch), seed_(seed), bucket_(lengths.size()) {
    std::vector<std::int64_t> by_length(lengths.size());
    std::iota(by_length.begin(), by_length.end(), std::int64_t{0});
    std::ranges::stable_sort(by_length, {}, [&](std::int64_t i) { return lengths[static_cast<std::size_t>(i)]; });
    for (std::int64_t place = 0; place < size(); ++place) {
      const auto bucket = static_cast<unsigned __int128>(place) * static_cast<unsigned __int128>(buckets) /
                          static_cast<unsigned __int128>(size());
      bucket_[static_cast<std::size_t>(by_length[static_cast<std::size_t>(place)])] = static_cast<std::int64_t>(bucket);
    }
  }

  void fill(std::int64_t epoch, std::int64_t, std::vector<std::int64_t>& samples) const override {
    std::vector<std::int64_t> order(static_cast<std::size_t>(size()));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const auto seed = epoch_seed(seed_, epoch);
    shuffle(order, RandomStream(seed));
    std::ranges::stable_sort(order, {}, [&](std::int64_t i) { return bucket_[static_cast<std::size_t>(i)]; });
    // The samples that do not fill a batch are drawn from all lengths; otherwise they would be the longest ones in
    // every epoch.
    const auto full = size() / batch_, rest = size() - full * batch_;
    RandomStream random(mix(seed, 1));
    const auto cut = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(size() - rest + 1)));
    std::rotate(order.begin() + cut, order.begin() + cut + rest, order.end());
    std::vector<std::int64_t> batches(static_cast<std::size_t>(full));
    std::iota(batches.begin(), batches.end(), std::int64_t{0});
    shuffle(batches, RandomStream(mix(seed, 2)));
    samples.clear();
    for (const auto batch : batches) {
      samples.insert(samples.end(), order.begin() + batch * batch_, order.begin() + (batch + 1) * batch_);
    }
    samples.insert(samples.end(), order.begin() + full * batch_, order.end());
  }

 private:
  std::int64_t batch_, seed_;
  std::vector<std::int64_t> bucket_;  // bucket of each sample
};

const bool bucketed_registered = Samplers::global().add<BucketedConfig>(
    "bucketed", "every sample once, in batches of similar lengths",
    [](const BucketedConfig& config, const SampleOrderInput& input) {
      std::vector<std::int64_t> lengths;
      for (std::int64_t i = 0; i < input.dataset.size(); ++i) lengths.push_back(input.dataset.length(i));
      if (lengths.at(0) < 0) {
        throw ConfigError(
            "loader.sampler: bucketed needs samples of different lengths, which this dataset does not have "
            "(`documents` "
            "with packing: pad has such samples); use another sampler");
      }
      return std::make_shared<Bucketed>(lengths, config.buckets, input.global_batch, input.seed);
    });

}  // namespace
}  // namespace phalanx
