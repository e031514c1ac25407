// SPDX-License-Identifier: Apache-2.0
// Sequences that must be reversed, for sequence-to-sequence models. The inputs are the source [n, k] int64, random
// symbols, and the target shifted by one position, [n, k]: a begin token, then the symbols of the target. The target
// [n, k] is the reversed source. Sequences have `shortest` to `length` symbols and are padded at the end, where targets
// are kIgnored. Symbols are 0 ... symbols - 1, the begin token is `symbols` and the padding is `symbols` + 1.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct ReversalConfig {
  std::int64_t symbols = 8;
  std::int64_t length = 12;
  std::int64_t shortest = 6;
  std::int64_t train_samples = 8000;
  std::int64_t test_samples = 500;
  std::int64_t seed = 1;
  std::string root;

  template <class V>
  void visit(V& v) {
    v("symbols", symbols, "number of different symbols; two additional tokens mark the beginning and padding",
      config::between(2, 1 << 20));
    v("length", length, "symbols of the longest sequences", config::between(1, 1 << 20));
    v("shortest", shortest, "symbols of the shortest ones", config::at_least(1));
    v("train_samples", train_samples, "sequences to train on", config::at_least(1));
    v("test_samples", test_samples, "sequences to test on, drawn separately from those to train on",
      config::at_least(1));
    v("seed", seed, "random seed of the sequences");
    v("root", root, "unused, since there are no files");
  }
};

class Reversals final : public Dataset {
 public:
  Reversals(const ReversalConfig& config, std::int64_t samples, std::uint64_t stream)
      : config_(config), samples_(samples), seed_(mix(static_cast<std::uint64_t>(config.seed), stream)) {
    const auto tensor = [&](const char* name) {
      return TensorSpec{.name = name, .shape = {config.length}, .dtype = at::kLong, .classes = config.symbols + 2};
    };
    spec_ = {.inputs = {tensor("source"), tensor("known_target")},
             .targets = {tensor("target")},
             .task = "language_modelling"};
    spec_.targets[0].ignored = config.shortest < config.length;
  }

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }
  std::int64_t length(std::int64_t index) const override {
    RandomStream draw = stream_of(index);
    return draw_length(draw);
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const std::array shape{static_cast<std::int64_t>(indices.size()), config_.length};
    auto* source = ensure(batch.inputs, 0, shape, at::kLong).data_ptr<std::int64_t>();
    auto* known = ensure(batch.inputs, 1, shape, at::kLong).data_ptr<std::int64_t>();
    auto* target = ensure(batch.targets, 0, shape, at::kLong).data_ptr<std::int64_t>();
    const auto begin = config_.symbols, padding = config_.symbols + 1;
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      RandomStream draw = stream_of(index);
      const auto length = draw_length(draw);
      std::generate_n(source, length, [&] {
        return static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(config_.symbols)));
      });
      std::reverse_copy(source, source + length, target);
      *known = begin;
      std::copy_n(target, length - 1, known + 1);
      std::fill(source + length, source + config_.length, padding);
      std::fill(known + length, known + config_.length, padding);
      std::fill(target + length, target + config_.length, kIgnored);
      source += config_.length;
      known += config_.length;
      target += config_.length;
    }
  }

 private:
  RandomStream stream_of(std::int64_t index) const {
    return RandomStream(mix(seed_, static_cast<std::uint64_t>(index)));
  }
  std::int64_t draw_length(RandomStream& draw) const {
    const auto lengths = static_cast<std::uint64_t>(config_.length - config_.shortest + 1);
    return config_.shortest + static_cast<std::int64_t>(draw.below(lengths));
  }

  ReversalConfig config_;
  std::int64_t samples_;
  std::uint64_t seed_;
  SampleSpec spec_;
};

Splits make_splits(const ReversalConfig& config) {
  if (config.shortest > config.length) {
    throw ConfigError("dataset.shortest: " + std::to_string(config.shortest) +
                      " is more than dataset.length: " + std::to_string(config.length));
  }
  return {.train = std::make_shared<Reversals>(config, config.train_samples, 0),
          .test = std::make_shared<Reversals>(config, config.test_samples, 1)};
}

const bool reversal_registered =
    Datasets::global().add<ReversalConfig>("reversal", "sequences of symbols to reverse, needs no files", make_splits);

}  // namespace
}  // namespace phalanx
