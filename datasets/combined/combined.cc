// SPDX-License-Identifier: Apache-2.0
// Datasets made of other datasets: concat, repeat, mix, subset, split and resample.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "datasets/combined/joined.h"
#include "datasets/combined/nested_dataset.h"
#include "datasets/sample_order.h"
#include "datasets/shuffle.h"
#include "datasets/subset.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

using Indices = std::vector<std::int64_t>;
using SplitOf = std::shared_ptr<const Dataset> Splits::*;

// Returns the parts of one split, or no parts if a dataset does not have this split.
DatasetParts parts_of(const std::vector<Splits>& all, SplitOf split) {
  DatasetParts parts;
  for (const auto& splits : all) {
    if (!(splits.*split)) return {};
    parts.push_back(splits.*split);
  }
  return parts;
}

// Concatenates all datasets, split by split. Repeats the training samples `times` times.
Splits joined(const std::vector<Splits>& all, std::int64_t times, const std::string& key) {
  DatasetParts train;
  for (std::int64_t i = 0; i < times; ++i) {
    for (const auto& splits : all) train.push_back(splits.train);
  }
  Splits result{.train = join_parts(std::move(train), key), .test = join_parts(parts_of(all, &Splits::test), key)};
  auto validation = parts_of(all, &Splits::validation);
  if (!validation.empty()) result.validation = join_parts(std::move(validation), key);
  return result;
}

Indices shuffled(std::int64_t samples, std::int64_t seed) {
  Indices order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  shuffle(order, RandomStream(static_cast<std::uint64_t>(seed)));
  return order;
}

std::shared_ptr<const Dataset> without_chance(const std::shared_ptr<const Dataset>& dataset) {
  auto unchanged = dataset->unchanged();
  return unchanged ? unchanged : dataset;
}

struct ConcatConfig {
  std::vector<NestedDataset> of;

  template <class V>
  void visit(V& v) {
    v("of", of, "datasets to join, one after the other in each split");
  }
};

Splits make_concat(const ConcatConfig& config) {
  std::vector<Splits> all;
  for (std::size_t i = 0; i < config.of.size(); ++i) all.push_back(config.of[i].make("of[" + std::to_string(i) + "]"));
  if (all.empty()) throw ConfigError("dataset.of: is empty; concat needs at least one dataset, of: [{name: ...}]");
  return joined(all, 1, "of");
}

struct RepeatConfig {
  NestedDataset of;
  std::int64_t times = 2;

  template <class V>
  void visit(V& v) {
    v("of", of, "dataset whose training samples to repeat");
    v("times", times, "how often an epoch takes each of them, each time with its own random changes",
      config::between(1, 1 << 20));
  }
};

struct WeightedDataset {
  NestedDataset dataset;
  double weight = 1;

  template <class V>
  void visit(V& v) {
    v("weight", weight, "samples are drawn in proportion to this weight", config::at_least(0));
    dataset.visit(v);
  }
};

struct MixConfig {
  std::vector<WeightedDataset> of;
  std::int64_t samples = 0;

  template <class V>
  void visit(V& v) {
    v("of", of, "datasets to draw training samples from; tests take the test samples of all of them");
    v("samples", samples, "samples to draw in an epoch; 0: as many as all datasets have together", config::at_least(0));
  }
};

Splits make_mix(const MixConfig& config) {
  std::vector<Splits> all;
  std::vector<double> weights;
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < config.of.size(); ++i) {
    all.push_back(config.of[i].dataset.make("of[" + std::to_string(i) + "]"));
    weights.push_back(config.of[i].weight);
    samples += all.back().train->size();
  }
  if (all.empty()) throw ConfigError("dataset.of: is empty; mix needs at least one dataset, of: [{name: ...}]");
  Splits splits = joined(all, 1, "of");
  splits.train =
      mix_parts(parts_of(all, &Splits::train), std::move(weights), config.samples > 0 ? config.samples : samples, "of");
  return splits;
}

struct SubsetConfig {
  NestedDataset of;
  std::int64_t train_samples = 0;
  std::int64_t test_samples = 0;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("of", of, "dataset to take some samples from");
    v("train_samples", train_samples, "samples to train on; 0: all", config::at_least(0));
    v("test_samples", test_samples, "samples to test on; 0: all", config::at_least(0));
    v("seed", seed, "random seed that chooses these samples");
  }
};

std::shared_ptr<const Dataset> some_of(const std::shared_ptr<const Dataset>& dataset, std::int64_t samples,
                                       std::int64_t seed, const std::string& key) {
  if (samples == 0) return dataset;
  if (samples > dataset->size()) {
    throw ConfigError("dataset." + key + ": " + std::to_string(samples) + " is more than the " +
                      std::to_string(dataset->size()) + " samples of the dataset");
  }
  auto order = shuffled(dataset->size(), seed);
  order.resize(static_cast<std::size_t>(samples));
  std::ranges::sort(order);
  return make_subset(dataset, std::move(order));
}

Splits make_subset_of(const SubsetConfig& config) {
  Splits splits = config.of.make("of");
  splits.train = some_of(splits.train, config.train_samples, config.seed, "train_samples");
  splits.test = some_of(splits.test, config.test_samples, config.seed, "test_samples");
  return splits;
}

struct SplitConfig {
  NestedDataset of;
  double validation = 0;
  double test = 0.1;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("of", of, "dataset whose training samples to divide; its other splits are not used");
    v("validation", validation, "share of them to validate on", config::between(0, 1));
    v("test", test, "share of them to test on", {.min = 0, .max = 1, .exclusive = true});
    v("seed", seed, "random seed that chooses these samples");
  }
};

Splits make_split(const SplitConfig& config) {
  const auto all = config.of.make("of").train;
  if (all->samples_overlap()) {
    throw ConfigError(
        "dataset.of: samples of this dataset overlap, so it cannot be divided into training and test samples");
  }
  const auto count = [&](double share) { return std::llround(share * static_cast<double>(all->size())); };
  const auto test = count(config.test), validation = count(config.validation);
  if (test < 1 || test + validation >= all->size() || (config.validation > 0 && validation < 1)) {
    throw ConfigError("dataset.test and dataset.validation divide " + std::to_string(all->size()) +
                      " samples so that a split is empty: " + std::to_string(test) + " to test on, " +
                      std::to_string(validation) + " to validate on");
  }
  auto order = shuffled(all->size(), config.seed);
  const auto take = [&](std::int64_t begin, std::int64_t end) {
    Indices part(order.begin() + begin, order.begin() + end);
    std::ranges::sort(part);
    return part;
  };
  const auto unchanged = without_chance(all);
  Splits splits{.train = make_subset(all, take(test + validation, all->size())),
                .test = make_subset(unchanged, take(0, test))};
  if (validation > 0) splits.validation = make_subset(unchanged, take(test, test + validation));
  return splits;
}

struct ResampleConfig {
  NestedDataset of;
  std::int64_t samples = 0;
  bool balanced = false;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("of", of, "dataset to draw training samples from, with replacement; all epochs take the same ones");
    v("samples", samples, "samples to draw; 0: as many as the dataset has", config::at_least(0));
    v("balanced", balanced, "first draw a class, all with the same probability, and then one of its samples");
    v("seed", seed, "random seed that chooses these samples");
  }
};

Splits make_resampled(const ResampleConfig& config) {
  Splits splits = config.of.make("of");
  std::vector<Indices> groups;
  if (config.balanced) {
    groups.resize(static_cast<std::size_t>(splits.train->spec().targets.at(0).classes));
    const auto labels = labels_of(*splits.train, "resample with balanced: true");
    for (std::size_t i = 0; i < labels.size(); ++i) {
      groups.at(static_cast<std::size_t>(labels[i])).push_back(static_cast<std::int64_t>(i));
    }
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
  } else {
    groups.push_back(shuffled(splits.train->size(), config.seed));
  }
  RandomStream random(mix(static_cast<std::uint64_t>(config.seed), 1));
  Indices drawn(static_cast<std::size_t>(config.samples > 0 ? config.samples : splits.train->size()));
  for (auto& index : drawn) {
    const auto& group = groups[random.below(groups.size())];
    index = group[random.below(group.size())];
  }
  splits.train = make_subset(splits.train, std::move(drawn));
  return splits;
}

const bool concat =
    add_dataset_without_files<ConcatConfig>("concat", "several datasets, one after the other", make_concat);
const bool repeated = add_dataset_without_files<RepeatConfig>(
    "repeat", "another dataset, several times in an epoch",
    [](const RepeatConfig& config) { return joined({config.of.make("of")}, config.times, "of"); });
const bool mixed = add_dataset_without_files<MixConfig>(
    "mix", "samples drawn from several datasets, in proportion to weights", make_mix);
const bool subset =
    add_dataset_without_files<SubsetConfig>("subset", "some samples of another dataset", make_subset_of);
const bool split = add_dataset_without_files<SplitConfig>(
    "split", "parts of another dataset's training samples as splits", make_split);
const bool resampled = add_dataset_without_files<ResampleConfig>(
    "resample", "training samples of another dataset, drawn with replacement", make_resampled);

}  // namespace
}  // namespace phalanx
