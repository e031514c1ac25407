// SPDX-License-Identifier: Apache-2.0
// Generated datasets for tests of whole runs: sequences of different lengths, numbers to predict, and pairs. Sample i
// depends only on i.
#include <ATen/TensorOperators.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

constexpr std::int64_t kTrainSamples = 100, kTestSamples = 26;

// A dataset whose rows `fill` writes. It gets the random stream of the sample and one row of each tensor.
class Made final : public Dataset {
 public:
  using Fill = void (*)(RandomStream random, Tensors inputs, Tensors targets);

  Made(SampleSpec spec, std::int64_t samples, std::uint64_t seed, Fill fill)
      : spec_(std::move(spec)), samples_(samples), seed_(seed), fill_(fill) {}

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto make_room = [&](Tensors& tensors, const std::vector<TensorSpec>& specs) {
      for (std::size_t i = 0; i < specs.size(); ++i) {
        auto sizes = specs[i].shape;
        sizes.insert(sizes.begin(), std::ssize(indices));
        ensure(tensors, i, sizes, specs[i].dtype);
      }
    };
    make_room(batch.inputs, spec_.inputs);
    make_room(batch.targets, spec_.targets);
    const auto rows = [](const Tensors& tensors, std::int64_t row) {
      Tensors all;
      for (const auto& tensor : tensors) all.push_back(tensor.select(0, row));
      return all;
    };
    for (std::int64_t row = 0; row < std::ssize(indices); ++row) {
      const auto index = static_cast<std::uint64_t>(indices[static_cast<std::size_t>(row)]);
      fill_(RandomStream(mix(seed_, index)), rows(batch.inputs, row), rows(batch.targets, row));
    }
  }

 private:
  SampleSpec spec_;
  std::int64_t samples_;
  std::uint64_t seed_;
  Fill fill_;
};

// Writes 1 to 8 tokens, each of which follows from the one before. The rest is padding.
void fill_tokens(RandomStream random, Tensors inputs, Tensors targets) {
  const auto length = inputs[0].numel();
  const auto used = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(length)));
  auto token = static_cast<std::int64_t>(random.below(5));
  for (std::int64_t i = 0; i < length; ++i) {
    const auto next = (2 * token + 1) % 5;
    inputs[0][i] = i < used ? token : 0;
    targets[0][i] = i < used ? next : kIgnored;
    token = next;
  }
}

// Writes two targets that depend on three inputs.
void fill_numbers(RandomStream random, Tensors inputs, Tensors targets) {
  std::array<float, 3> x{};
  for (int i = 0; i < 3; ++i) inputs[0][i] = x[static_cast<std::size_t>(i)] = random.between(-1, 1);
  targets[0][0] = std::sin(x[0] + x[1]);
  targets[0][1] = x[1] * x[2];
}

// Writes a target of 1 if a number is above the sum of two others, and 0 otherwise.
void fill_pairs(RandomStream random, Tensors inputs, Tensors targets) {
  const float a = random.between(-1, 1), b = random.between(-1, 1), c = random.between(-1, 1);
  inputs[0][0] = a;
  inputs[1][0] = b;
  inputs[1][1] = c;
  targets[0].fill_(a > b + c ? 1 : 0);
}

// Writes a number around 2, and noise.
void fill_real(RandomStream random, Tensors inputs, Tensors) {
  inputs[0][0] = 2 + random.between(-0.5F, 0.5F);
  inputs[1][0] = random.between(-1, 1);
}

bool add(const std::string& name, const SampleSpec& spec, Made::Fill fill) {
  return Datasets::global().add<NoFields>(name, "made for tests", [spec, fill](const NoFields&) {
    return Splits{.train = std::make_shared<Made>(spec, kTrainSamples, 1, fill),
                  .test = std::make_shared<Made>(spec, kTestSamples, 2, fill)};
  });
}

const bool padded = add("padded_tokens_under_test", language_samples(8, 5, /*padded=*/true), fill_tokens);

const bool numbers =
    add("numbers_under_test",
        {.inputs = {{.name = "x", .shape = {3}}}, .targets = {{.name = "y", .shape = {2}}}, .task = "regression"},
        fill_numbers);

const bool pairs = add("pairs_under_test",
                       {.inputs = {{.name = "one", .shape = {1}}, {.name = "two", .shape = {2}}},
                        .targets = {{.name = "label", .dtype = at::kLong, .classes = 2}},
                        .task = "classification"},
                       fill_pairs);

const bool real = add("real_numbers_under_test",
                      {.inputs = {{.name = "real", .shape = {1}}, {.name = "noise", .shape = {1}}},
                       .targets = {},
                       .task = "adversarial_under_test"},
                      fill_real);

}  // namespace
}  // namespace phalanx
