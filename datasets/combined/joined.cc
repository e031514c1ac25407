// SPDX-License-Identifier: Apache-2.0
#include "datasets/combined/joined.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "datasets/batch_memory.h"
#include "datasets/random_stream.h"
#include "framework/base/error.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

constexpr std::uint64_t kChoice = 0x6d69787475726573;  // stream of a seed, far from the streams of parts and samples

// Merges `other` into `all`. Returns false if samples of the two cannot be in one batch.
bool add_spec(std::vector<TensorSpec>& all, const std::vector<TensorSpec>& other) {
  if (all.size() != other.size()) return false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].shape != other[i].shape || all[i].dtype != other[i].dtype) return false;
    if ((all[i].classes == 0) != (other[i].classes == 0)) return false;
    all[i].classes = std::max(all[i].classes, other[i].classes);
    all[i].ignored = all[i].ignored || other[i].ignored;
  }
  return true;
}

SampleSpec common_spec(const DatasetParts& parts, const std::string& key) {
  if (parts.empty()) throw ConfigError("dataset." + key + ": is empty; it needs at least one dataset");
  auto spec = parts[0]->spec();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto& other = parts[i]->spec();
    if (spec.task == other.task && add_spec(spec.inputs, other.inputs) && add_spec(spec.targets, other.targets)) {
      continue;
    }
    throw ConfigError("dataset." + key + "[" + std::to_string(i) +
                      "]: its samples have other shapes or types than those of the first dataset, or are for another "
                      "task, so that they cannot share batches");
  }
  return spec;
}

struct Place {
  std::size_t part;
  std::int64_t index;
};

// Samples of several datasets.
class Combined : public Dataset {
 public:
  Combined(DatasetParts parts, SampleSpec spec) : parts_(std::move(parts)), spec_(std::move(spec)) {}

  const SampleSpec& spec() const final { return spec_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const final {
    const auto rows = std::ssize(indices);
    std::vector<std::vector<std::int64_t>> theirs(parts_.size()), at(parts_.size());  // samples, rows
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto index = indices[static_cast<std::size_t>(row)];
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      const auto [part, sample] = place(index, seed);
      theirs[part].push_back(sample);
      at[part].push_back(row);
    }
    bool first = true;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (theirs[part].empty()) continue;
      const auto part_seed = mix(seed, part);
      if (std::ssize(theirs[part]) == rows) return parts_[part]->gather(theirs[part], part_seed, batch);
      Batch some;
      parts_[part]->gather(theirs[part], part_seed, some);
      put(some.inputs, at[part], rows, first, batch.inputs);
      put(some.targets, at[part], rows, first, batch.targets);
      first = false;
    }
  }

 protected:
  virtual Place place(std::int64_t index, std::uint64_t seed) const = 0;

  const DatasetParts& parts() const { return parts_; }

  // Returns the parts without random changes, or no parts if none of them has random changes.
  DatasetParts unchanged_parts() const {
    DatasetParts all;
    bool any = false;
    for (const auto& part : parts_) {
      auto same = part->unchanged();
      any = any || same != nullptr;
      all.push_back(same ? std::move(same) : part);
    }
    return any ? all : DatasetParts{};
  }

 private:
  // Copies row i of `some` to row at[i] of `all`. The first part that is put allocates `all`.
  static void put(const Tensors& some, const std::vector<std::int64_t>& at, std::int64_t rows, bool first,
                  Tensors& all) {
    for (std::size_t i = 0; i < some.size(); ++i) {
      auto shape = some[i].sizes().vec();
      shape[0] = rows;
      if (first) ensure(all, i, shape, some[i].scalar_type());
      TORCH_CHECK(all[i].sizes() == at::IntArrayRef(shape), "the parts of a dataset gave tensors of different shapes");
      const auto bytes = some[i].nbytes() / at.size();
      auto* to = static_cast<char*>(all[i].data_ptr());
      const auto* from = static_cast<const char*>(some[i].const_data_ptr());
      for (std::size_t row = 0; row < at.size(); ++row) {
        std::copy_n(from + row * bytes, bytes, to + static_cast<std::size_t>(at[row]) * bytes);
      }
    }
  }

  DatasetParts parts_;
  SampleSpec spec_;
};

class Joined final : public Combined {
 public:
  Joined(DatasetParts parts, SampleSpec spec) : Combined(std::move(parts), std::move(spec)) {
    for (const auto& part : this->parts()) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + part->size());
  }

  std::int64_t size() const override { return ends_.back(); }
  std::int64_t label(std::int64_t index) const override {
    const auto [part, sample] = place(index, 0);
    return parts()[part]->label(sample);
  }
  std::int64_t length(std::int64_t index) const override {
    const auto [part, sample] = place(index, 0);
    return parts()[part]->length(sample);
  }

  // A dataset that is a part twice overlaps itself.
  bool samples_overlap() const override {
    for (std::size_t i = 0; i < parts().size(); ++i) {
      if (parts()[i]->samples_overlap()) return true;
      for (std::size_t j = 0; j < i; ++j) {
        if (parts()[i] == parts()[j]) return true;
      }
    }
    return false;
  }

  bool varies() const override {
    return std::ranges::any_of(parts(), [](const auto& part) { return part->varies(); });
  }
  std::shared_ptr<const Dataset> unchanged() const override {
    auto parts = unchanged_parts();
    return parts.empty() ? nullptr : std::make_shared<Joined>(std::move(parts), spec());
  }

 private:
  Place place(std::int64_t index, std::uint64_t) const override {
    const auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
    return {part, index - (part == 0 ? 0 : ends_[part - 1])};
  }

  std::vector<std::int64_t> ends_;  // number of samples in each part and the ones before it
};

class Mixed final : public Combined {
 public:
  Mixed(DatasetParts parts, SampleSpec spec, const std::vector<double>& weights, std::int64_t samples)
      : Combined(std::move(parts), std::move(spec)), samples_(samples), ends_(weights.size()) {
    std::partial_sum(weights.begin(), weights.end(), ends_.begin());
  }

  std::int64_t size() const override { return samples_; }
  bool samples_overlap() const override { return true; }
  bool varies() const override { return true; }

 private:
  Place place(std::int64_t index, std::uint64_t seed) const override {
    RandomStream random(mix(mix(seed, kChoice), static_cast<std::uint64_t>(index)));
    const double at = ends_.back() * random.below_one();
    const auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, at) - ends_.begin());
    return {part, static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(parts()[part]->size())))};
  }

  std::int64_t samples_;
  std::vector<double> ends_;  // sum of the weights of each part and the ones before it
};

}  // namespace

std::shared_ptr<const Dataset> join_parts(DatasetParts parts, const std::string& key) {
  auto spec = common_spec(parts, key);
  return std::make_shared<Joined>(std::move(parts), std::move(spec));
}

std::shared_ptr<const Dataset> mix_parts(DatasetParts parts, std::vector<double> weights, std::int64_t samples,
                                         const std::string& key) {
  auto spec = common_spec(parts, key);
  if (std::accumulate(weights.begin(), weights.end(), 0.0) <= 0) {
    throw ConfigError("dataset." + key + ": all weights are 0; at least one must be above 0");
  }
  return std::make_shared<Mixed>(std::move(parts), std::move(spec), weights, samples);
}

}  // namespace phalanx
