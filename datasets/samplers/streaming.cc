// SPDX-License-Identifier: Apache-2.0
// Every sample once, nearly in stored order, for data that is larger than memory. Blocks of consecutive samples are put
// in an order drawn for the epoch, and samples are shuffled within a window of several blocks. So disks are read in
// long pieces, and the order takes 8 bytes for each block and each sample of one window, not for each sample.
#include <algorithm>
#include <memory>
#include <numeric>

#include "datasets/samplers/whole_order.h"
#include "datasets/shuffle.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct StreamingConfig {
  std::int64_t block = 1024;
  std::int64_t window = 16384;

  template <class V>
  void visit(V& v) {
    v("block", block, "neighbouring samples that are read one after the other", config::between(1, 1L << 40));
    v("window", window, "number of samples that are shuffled with each other; 1: none are",
      config::between(1, 1 << 28));
  }
};

class Streaming final : public SampleOrder {
 public:
  Streaming(std::int64_t samples, const StreamingConfig& config, std::int64_t seed)
      : samples_(samples), config_(config), seed_(seed) {}

  std::int64_t size() const override { return samples_; }
  std::int64_t window() const override { return config_.window; }

  void fill(std::int64_t epoch, std::int64_t number, std::vector<std::int64_t>& samples) const override {
    const auto seed = epoch_seed(seed_, epoch);
    // An incomplete block stays at the end, so that the block of a position can be computed without the others.
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(samples_ / config_.block));
    std::iota(blocks.begin(), blocks.end(), std::int64_t{0});
    shuffle(blocks, RandomStream(seed));
    const auto begin = number * config_.window, end = std::min(begin + config_.window, samples_);
    samples.clear();
    for (auto position = begin; position < end; ++position) {
      const auto place = static_cast<std::size_t>(position / config_.block);
      const auto block = place < blocks.size() ? blocks[place] : static_cast<std::int64_t>(place);
      samples.push_back(block * config_.block + position % config_.block);
    }
    shuffle(samples, RandomStream(mix(mix(seed, 1), static_cast<std::uint64_t>(number))));
  }

 private:
  std::int64_t samples_;
  StreamingConfig config_;
  std::int64_t seed_;
};

const bool streaming_registered = Samplers::global().add<StreamingConfig>(
    "streaming",
    "every sample once, nearly in the order in which they are stored: blocks in a random order, shuffled within a "
    "window",
    [](const StreamingConfig& config, const SampleOrderInput& input) {
      return std::make_shared<Streaming>(input.dataset.size(), config, input.seed);
    });

}  // namespace
}  // namespace phalanx
