// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/document_sequences.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using Tokens = std::vector<std::int64_t>;

class Documents final : public Dataset {
 public:
  // The inputs of sample i are tokens [begin, begin + length); its targets are the tokens that follow each.
  struct Sample {
    std::int64_t begin, length;
  };
  Documents(Tokens tokens, std::vector<Sample> samples, std::int64_t context, std::int64_t end, bool padded)
      : tokens_(std::move(tokens)),
        samples_(std::move(samples)),
        spec_(language_samples(context, end + 1, padded)),
        context_(context),
        end_(end),
        padded_(padded) {}

  std::int64_t size() const override { return std::ssize(samples_); }
  const SampleSpec& spec() const override { return spec_; }
  std::int64_t length(std::int64_t index) const override {
    return padded_ ? samples_.at(static_cast<std::size_t>(index)).length : -1;
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices);
    auto* input = ensure(batch.inputs, 0, std::array{rows, context_}, at::kLong).data_ptr<std::int64_t>();
    auto* target = ensure(batch.targets, 0, std::array{rows, context_}, at::kLong).data_ptr<std::int64_t>();
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      const auto [begin, length] = samples_[static_cast<std::size_t>(index)];
      const auto* first = tokens_.data() + begin;
      input = std::fill_n(std::copy_n(first, length, input), context_ - length, end_);
      target = std::fill_n(std::copy_n(first + 1, length, target), context_ - length, kIgnored);
    }
  }

 private:
  Tokens tokens_;
  std::vector<Sample> samples_;
  SampleSpec spec_;
  std::int64_t context_, end_;
  bool padded_;
};

}  // namespace

std::shared_ptr<const Tokenizer> SequencesConfig::make_tokenizer(const std::filesystem::path& root) const {
  return phalanx::make_tokenizer(tokenizer == "bytes" ? "bytes" : (root / tokenizer).string());
}

std::shared_ptr<const Dataset> document_sequences(const SequencesConfig& config, const Tokenizer& tokenizer,
                                                  const NextDocument& next, const std::string& where) {
  const auto end = tokenizer.size(), context = config.context;
  const bool pad = config.packing == "pad";
  Tokens tokens;
  std::vector<Documents::Sample> samples;
  std::int64_t documents = 0;
  while (const auto document = next()) {
    const auto begin = std::ssize(tokens);
    const auto its = tokenizer.encode(*document);
    tokens.insert(tokens.end(), its.begin(), its.end());
    tokens.push_back(end);
    ++documents;
    if (!pad) continue;
    const auto inputs = std::ssize(tokens) - 1;  // the end token is only a target
    for (auto at = begin; at < inputs; at += context) samples.push_back({at, std::min(context, inputs - at)});
  }
  if (!pad) {
    for (std::int64_t at = 0; at + context < std::ssize(tokens); at += context) samples.push_back({at, context});
  }
  if (samples.empty()) {
    throw DataError(where + ": " + std::to_string(documents) + " of its documents have " +
                    std::to_string(tokens.size()) + " tokens, fewer than a sample needs (dataset.context: " +
                    std::to_string(context) + "); use more text, a smaller context or packing: pad");
  }
  return std::make_shared<Documents>(std::move(tokens), std::move(samples), context, end, pad);
}

}  // namespace phalanx
