// SPDX-License-Identifier: Apache-2.0
// Sequences that must be repeated (Graves et al. 2014, Neural Turing Machines, arXiv:1410.5401, section 4.1). Input [n,
// 2 k] int64: k random symbols, a separator and the first k - 1 symbols again. Target [n, 2 k] int64: the token that
// follows each position. Targets of the first half are unpredictable and ignored. Symbols are 0 ... symbols - 1; the
// separator is `symbols`.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "framework/base/config/visitor.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct CopyConfig {
  std::int64_t symbols = 8;
  std::int64_t length = 12;
  std::int64_t train_samples = 8000;
  std::int64_t test_samples = 500;
  std::int64_t seed = 1;
  std::string root;

  template <class V>
  void visit(V& v) {
    v("symbols", symbols, "number of different symbols", config::between(2, 1 << 20));
    v("length", length, "symbols of a sequence; a sample has twice as many tokens", config::between(1, 1 << 20));
    v("train_samples", train_samples, "sequences to train on", config::at_least(1));
    v("test_samples", test_samples, "sequences to test on, drawn separately from those to train on",
      config::at_least(1));
    v("seed", seed, "random seed of the sequences");
    v("root", root, "unused, since there are no files");
  }
};

class Copies final : public Dataset {
 public:
  Copies(const CopyConfig& config, std::int64_t samples, std::uint64_t stream)
      : config_(config),
        samples_(samples),
        seed_(mix(static_cast<std::uint64_t>(config.seed), stream)),
        spec_(language_samples(2 * config.length, config.symbols + 1, /*padded=*/true)) {}

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = static_cast<std::int64_t>(indices.size()), length = config_.length;
    auto* input = ensure(batch.inputs, 0, std::array{rows, 2 * length}, at::kLong).data_ptr<std::int64_t>();
    auto* target = ensure(batch.targets, 0, std::array{rows, 2 * length}, at::kLong).data_ptr<std::int64_t>();
    std::vector<std::int64_t> symbols(static_cast<std::size_t>(length));
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      RandomStream random(mix(seed_, static_cast<std::uint64_t>(index)));
      const auto count = static_cast<std::uint64_t>(config_.symbols);
      for (auto& symbol : symbols) symbol = static_cast<std::int64_t>(random.below(count));
      input = std::ranges::copy(symbols, input).out;
      *input++ = config_.symbols;
      input = std::copy_n(symbols.begin(), length - 1, input);
      target = std::fill_n(target, length, kIgnored);
      target = std::ranges::copy(symbols, target).out;
    }
  }

 private:
  CopyConfig config_;
  std::int64_t samples_;
  std::uint64_t seed_;
  SampleSpec spec_;
};

Splits make_splits(const CopyConfig& config) {
  return {.train = std::make_shared<Copies>(config, config.train_samples, 0),
          .test = std::make_shared<Copies>(config, config.test_samples, 1)};
}

const bool copy_task_registered =
    Datasets::global().add<CopyConfig>("copy_task", "sequences of symbols to repeat, needs no files", make_splits);

}  // namespace
}  // namespace phalanx
