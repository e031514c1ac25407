// SPDX-License-Identifier: Apache-2.0
// Sequences that must be reversed, for sequence-to-sequence models. The inputs are the source [n, k] int64, random
// symbols, and the target shifted by one position, [n, k]: a begin token, then the symbols of the target. The target
// [n, k] is the reversed source. Sequences have `shortest` to `length` symbols and are padded at the end, where targets
// are kIgnored. Symbols are 0 ... symbols - 1, the begin token is `symbols` and the padding is `symbols` + 1.
#include <algorithm>
#include <cstdint>
#include <string>

#include "datasets/generated.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct ReversalConfig : GeneratedConfig {
  ReversalConfig() : GeneratedConfig{.train_samples = 8000, .test_samples = 500} {}

  std::int64_t symbols = 8;
  std::int64_t length = 12;
  std::int64_t shortest = 6;

  template <class V>
  void visit(V& v) {
    v("symbols", symbols, "number of different symbols; two additional tokens mark the beginning and padding",
      config::between(2, 1 << 20));
    v("length", length, "symbols of the longest sequences", config::between(1, 1 << 20));
    v("shortest", shortest, "symbols of the shortest ones", config::at_least(1));
    visit_sizes(v);
    visit_seed(v);
  }
};

SampleSpec spec_of(const ReversalConfig& config) {
  const auto tensor = [&](const char* name) {
    return TensorSpec{.name = name, .shape = {config.length}, .dtype = at::kLong, .classes = config.symbols + 2};
  };
  SampleSpec spec{.inputs = {tensor("source"), tensor("known_target")},
                  .targets = {tensor("target")},
                  .task = "language_modelling"};
  spec.targets[0].ignored = config.shortest < config.length;
  return spec;
}

class Reversals final : public GeneratedDataset {
 public:
  Reversals(const ReversalConfig& config, Split split) : GeneratedDataset(spec_of(config), split), config_(config) {}

  std::int64_t length(std::int64_t index) const override {
    RandomStream random(seed_of(index));
    return draw_length(random);
  }

 private:
  void write(std::int64_t index, const Row& row) const override {
    auto* source = row.input<std::int64_t>(0);
    auto* known = row.input<std::int64_t>(1);
    auto* target = row.target<std::int64_t>();
    const auto begin = config_.symbols, padding = config_.symbols + 1;
    RandomStream random(seed_of(index));
    const auto length = draw_length(random);
    std::generate_n(source, length, [&] {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(config_.symbols)));
    });
    std::reverse_copy(source, source + length, target);
    *known = begin;
    std::copy_n(target, length - 1, known + 1);
    std::fill(source + length, source + config_.length, padding);
    std::fill(known + length, known + config_.length, padding);
    std::fill(target + length, target + config_.length, kIgnored);
  }

  std::int64_t draw_length(RandomStream& random) const {
    const auto lengths = static_cast<std::uint64_t>(config_.length - config_.shortest + 1);
    return config_.shortest + static_cast<std::int64_t>(random.below(lengths));
  }

  ReversalConfig config_;
};

Splits make_reversals(const ReversalConfig& config) {
  if (config.shortest > config.length) {
    throw ConfigError("dataset.shortest: " + std::to_string(config.shortest) +
                      " is more than dataset.length: " + std::to_string(config.length));
  }
  return generated_splits<Reversals>(config);
}

const bool reversal_registered = add_dataset_without_files<ReversalConfig>(
    "reversal", "sequences of symbols to reverse, needs no files", make_reversals);

}  // namespace
}  // namespace phalanx
