// SPDX-License-Identifier: Apache-2.0
// Samples for metric learning: each sample of another dataset with partners of the same class or of other classes.
//
//   pairs     sample i and one of its class or of another class       input [n, 2, ...], target [n, 2] int64
//   triplets  sample i, one of its class and one of another class     input [n, 3, ...], target [n, 3] int64
//
// Targets are the classes of the members. In training, partners are a function of (the loader's seed, i), so they
// differ in every epoch and do not depend on how ranks divide batches. In tests they are a function of (dataset.seed,
// i) and always the same. The other class is drawn first, uniformly, and then one of its samples. Reads two or three
// samples for each sample.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/combined/nested_dataset.h"
#include "datasets/random_stream.h"
#include "datasets/sample_order.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

using Indices = std::vector<std::int64_t>;

constexpr std::uint64_t kPartners = 0x706172746e657273;  // stream of a seed, far from the streams of samples

// The samples of a split, grouped by class.
struct Classes {
  Indices labels;               // class of each sample
  std::vector<Indices> groups;  // ascending samples of each class
  Indices present;              // classes that have samples, ascending
};

// Returns a random element of `all` other than `own`. `all` is ascending and contains `own`.
std::int64_t another(const Indices& all, std::int64_t own, RandomStream& random) {
  const auto drawn = static_cast<std::size_t>(random.below(all.size() - 1));
  return all[all[drawn] >= own ? drawn + 1 : drawn];
}

class Partners final : public Dataset {
 public:
  struct Draw {
    std::int64_t members = 2;
    double same = 0.5;       // share of pairs whose members have the same class
    std::uint64_t seed = 0;  // seed of the partners in tests
  };

  Partners(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Classes> classes, Draw draw, bool fixed)
      : dataset_(std::move(dataset)),
        classes_(std::move(classes)),
        draw_(draw),
        fixed_(fixed),
        spec_(dataset_->spec()) {
    const auto of_members = [&](std::vector<std::int64_t>& shape) { shape.insert(shape.begin(), draw_.members); };
    for (auto& input : spec_.inputs) of_members(input.shape);
    spec_.targets.at(0).name = "classes";
    of_members(spec_.targets[0].shape);
    spec_.task = "metric_learning";
  }

  std::int64_t size() const override { return dataset_->size(); }
  const SampleSpec& spec() const override { return spec_; }
  bool samples_overlap() const override { return true; }  // a sample may be the partner of another one
  std::int64_t label(std::int64_t index) const override { return classes_->labels.at(static_cast<std::size_t>(index)); }

  bool varies() const override { return !fixed_ || dataset_->varies(); }

  // Returns unchanged samples with the partners that tests use.
  std::shared_ptr<const Dataset> unchanged() const override {
    auto same = dataset_->unchanged();
    return std::make_shared<Partners>(same ? std::move(same) : dataset_, classes_, draw_, /*fixed=*/true);
  }

  void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const override {
    Indices wanted;
    wanted.reserve(indices.size() * static_cast<std::size_t>(draw_.members));
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      add_members(index, mix(fixed_ ? draw_.seed : seed, kPartners), wanted);
    }
    Batch read;
    dataset_->gather(wanted, seed, read);
    copy_members(read.inputs, std::ssize(indices), batch.inputs);
    copy_members(read.targets, std::ssize(indices), batch.targets);
  }

 private:
  void add_members(std::int64_t index, std::uint64_t seed, Indices& wanted) const {
    RandomStream random(mix(seed, static_cast<std::uint64_t>(index)));
    const auto label = this->label(index);
    const auto of_the_same = [&] { return another(classes_->groups[static_cast<std::size_t>(label)], index, random); };
    const auto of_another = [&] {
      const auto& group = classes_->groups[static_cast<std::size_t>(another(classes_->present, label, random))];
      return group[static_cast<std::size_t>(random.below(group.size()))];
    };
    wanted.push_back(index);
    if (draw_.members == 2) {
      wanted.push_back(random.below_one() < draw_.same ? of_the_same() : of_another());
    } else {
      wanted.push_back(of_the_same());
      wanted.push_back(of_another());
    }
  }

  // [rows members, ...] -> [rows, members, ...]
  void copy_members(const Tensors& read, std::int64_t rows, Tensors& out) const {
    for (std::size_t i = 0; i < read.size(); ++i) {
      auto shape = read[i].sizes().vec();
      shape[0] = draw_.members;
      shape.insert(shape.begin(), rows);
      std::memcpy(ensure(out, i, shape, read[i].scalar_type()).mutable_data_ptr(), read[i].const_data_ptr(),
                  read[i].nbytes());
    }
  }

  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const Classes> classes_;
  Draw draw_;
  bool fixed_;
  SampleSpec spec_;
};

std::shared_ptr<const Classes> classes_of(const Dataset& dataset, const std::string& name, bool need_two) {
  const auto& targets = dataset.spec().targets;
  if (targets.size() != 1 || !targets[0].shape.empty() || targets[0].classes == 0 || targets[0].ignored) {
    throw ConfigError("dataset.of: " + name + " needs samples with one class each, which this dataset does not have");
  }
  auto classes = std::make_shared<Classes>();
  classes->labels = labels_of(dataset, name.c_str());
  classes->groups.resize(static_cast<std::size_t>(targets[0].classes));
  for (std::size_t i = 0; i < classes->labels.size(); ++i) {
    classes->groups.at(static_cast<std::size_t>(classes->labels[i])).push_back(static_cast<std::int64_t>(i));
  }
  for (std::size_t i = 0; i < classes->groups.size(); ++i) {
    if (!classes->groups[i].empty()) classes->present.push_back(static_cast<std::int64_t>(i));
    if (need_two && classes->groups[i].size() == 1) {
      throw ConfigError("dataset.of: " + name + " needs at least two samples of each class, but class " +
                        std::to_string(i) + " has only one of the " + std::to_string(dataset.size()) +
                        " samples of a split; take more samples");
    }
  }
  if (classes->present.size() < 2) {
    throw ConfigError("dataset.of: " + name + " needs samples of at least two classes, but all " +
                      std::to_string(dataset.size()) + " samples of a split have the same class");
  }
  return classes;
}

Splits with_partners(const NestedDataset& of, const std::string& name, const Partners::Draw& draw) {
  Splits splits = of.make("of");
  const auto make = [&](std::shared_ptr<const Dataset> dataset, bool fixed) -> std::shared_ptr<const Dataset> {
    if (!dataset) return nullptr;
    auto classes = classes_of(*dataset, name, draw.members > 2 || draw.same > 0);
    return std::make_shared<Partners>(std::move(dataset), std::move(classes), draw, fixed);
  };
  return {
      .train = make(splits.train, false), .validation = make(splits.validation, true), .test = make(splits.test, true)};
}

struct PairsConfig {
  NestedDataset of;
  double same = 0.5;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("of", of, "dataset with classes; each of its samples gets a partner");
    v("same", same, "share of pairs whose members have the same class", config::between(0, 1));
    v("seed", seed, "random seed of the partners in tests");
  }
};

struct TripletsConfig {
  NestedDataset of;
  std::int64_t seed = 1;

  template <class V>
  void visit(V& v) {
    v("of", of, "dataset with classes; each of its samples gets one of its class and one of another");
    v("seed", seed, "random seed of the partners in tests");
  }
};

const bool pairs = add_dataset_without_files<PairsConfig>(
    "pairs", "samples of another dataset, each with a sample of its class or of another",
    [](const PairsConfig& config) {
      return with_partners(config.of, "pairs",
                           {.members = 2, .same = config.same, .seed = static_cast<std::uint64_t>(config.seed)});
    });

const bool triplets = add_dataset_without_files<TripletsConfig>(
    "triplets", "samples of another dataset, each with a sample of its class and one of another",
    [](const TripletsConfig& config) {
      return with_partners(config.of, "triplets", {.members = 3, .seed = static_cast<std::uint64_t>(config.seed)});
    });

}  // namespace
}  // namespace phalanx
