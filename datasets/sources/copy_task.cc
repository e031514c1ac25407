// SPDX-License-Identifier: Apache-2.0
// Sequences that must be repeated (Graves et al. 2014, Neural Turing Machines, arXiv:1410.5401, section 4.1). Input [n,
// 2 k] int64: k random symbols, a separator and the first k - 1 symbols again. Target [n, 2 k] int64: the token that
// follows each position. Targets of the first half are unpredictable and ignored. Symbols are 0 ... symbols - 1; the
// separator is `symbols`.
#include <algorithm>
#include <cstdint>

#include "datasets/generated.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"

namespace phalanx {
namespace {

struct CopyConfig : GeneratedConfig {
  CopyConfig() : GeneratedConfig{.train_samples = 8000, .test_samples = 500} {}

  std::int64_t symbols = 8;
  std::int64_t length = 12;

  template <class V>
  void visit(V& v) {
    v("symbols", symbols, "number of different symbols", config::between(2, 1 << 20));
    v("length", length, "symbols of a sequence; a sample has twice as many tokens", config::between(1, 1 << 20));
    visit_sizes(v);
    visit_seed(v);
  }
};

class Copies final : public GeneratedDataset {
 public:
  Copies(const CopyConfig& config, Split split)
      : GeneratedDataset(language_samples(2 * config.length, config.symbols + 1, /*padded=*/true), split),
        symbols_(config.symbols),
        length_(config.length) {}

 private:
  void write(std::int64_t index, const Row& row) const override {
    RandomStream random(seed_of(index));
    auto* symbols = row.input<std::int64_t>();
    std::generate_n(symbols, length_,
                    [&] { return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(symbols_))); });
    symbols[length_] = symbols_;
    std::copy_n(symbols, length_ - 1, symbols + length_ + 1);
    auto* target = row.target<std::int64_t>();
    std::fill_n(target, length_, kIgnored);
    std::copy_n(symbols, length_, target + length_);
  }

  std::int64_t symbols_, length_;
};

const bool copy_task_registered = add_dataset_without_files<CopyConfig>(
    "copy_task", "sequences of symbols to repeat, needs no files", generated_splits<Copies, CopyConfig>);

}  // namespace
}  // namespace phalanx
