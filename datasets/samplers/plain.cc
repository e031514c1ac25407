// SPDX-License-Identifier: Apache-2.0
// Orders that depend only on the number of samples: auto, sequential, shuffled, infinite.
#include <algorithm>
#include <memory>
#include <numeric>

#include "datasets/samplers/whole_order.h"
#include "datasets/shuffle.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

class Sequential final : public WholeOrder {
 public:
  using WholeOrder::WholeOrder;
  void fill(std::int64_t, std::int64_t, std::vector<std::int64_t>& samples) const override {
    samples.resize(static_cast<std::size_t>(size()));
    std::iota(samples.begin(), samples.end(), std::int64_t{0});
  }
};

// Makes the same order of `samples` as BatchSampler without a SampleOrder.
void shuffled(std::int64_t samples, std::int64_t seed, std::int64_t pass, std::vector<std::int64_t>& order) {
  order.resize(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  shuffle(order, RandomStream(epoch_seed(seed, pass)));
}

class Shuffled final : public WholeOrder {
 public:
  Shuffled(std::int64_t samples, std::int64_t seed) : WholeOrder(samples), seed_(seed) {}
  void fill(std::int64_t epoch, std::int64_t, std::vector<std::int64_t>& samples) const override {
    shuffled(size(), seed_, epoch, samples);
  }

 private:
  std::int64_t seed_;
};

struct InfiniteConfig {
  std::int64_t samples = 0;

  template <class V>
  void visit(V& v) {
    v("samples", samples, "samples of an epoch; 0: as many as the dataset has, rounded up to whole batches",
      config::between(0, 1L << 28));
  }
};

// Concatenates shuffled passes over the samples. An epoch begins where the previous one ended, even in the middle of a
// pass.
class Infinite final : public WholeOrder {
 public:
  Infinite(std::int64_t samples, std::int64_t per_epoch, std::int64_t seed)
      : WholeOrder(per_epoch), samples_(samples), seed_(seed) {}

  void fill(std::int64_t epoch, std::int64_t, std::vector<std::int64_t>& samples) const override {
    samples.clear();
    std::vector<std::int64_t> pass;
    auto at = static_cast<unsigned __int128>(epoch) * static_cast<unsigned __int128>(size());
    for (auto left = size(); left > 0;) {
      const auto number = static_cast<std::int64_t>(at / static_cast<unsigned __int128>(samples_));
      const auto begin = static_cast<std::int64_t>(at % static_cast<unsigned __int128>(samples_));
      shuffled(samples_, seed_, number, pass);
      const auto count = std::min(left, samples_ - begin);
      samples.insert(samples.end(), pass.begin() + begin, pass.begin() + begin + count);
      at += static_cast<unsigned __int128>(count);
      left -= count;
    }
  }

 private:
  std::int64_t samples_, seed_;
};

const bool automatic =
    Samplers::global().add<NoFields>("auto", "shuffled, or sequential with loader.shuffle: false",
                                     [](const NoFields&, const SampleOrderInput&) { return nullptr; });

const bool sequential = Samplers::global().add<NoFields>(
    "sequential", "the dataset's own order, in every epoch",
    [](const NoFields&, const SampleOrderInput& input) { return std::make_shared<Sequential>(input.dataset.size()); });

const bool shuffle_all =
    Samplers::global().add<NoFields>("shuffled", "every sample once, in a new random order in each epoch",
                                     [](const NoFields&, const SampleOrderInput& input) {
                                       return std::make_shared<Shuffled>(input.dataset.size(), input.seed);
                                     });

const bool infinite = Samplers::global().add<InfiniteConfig>(
    "infinite", "shuffled passes, each directly after the one before, so that every batch is full",
    [](const InfiniteConfig& config, const SampleOrderInput& input) {
      const auto batches = (input.dataset.size() - 1) / input.global_batch + 1;
      return std::make_shared<Infinite>(input.dataset.size(),
                                        config.samples > 0 ? config.samples : batches * input.global_batch, input.seed);
    });

}  // namespace
}  // namespace phalanx
