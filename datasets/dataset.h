// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "framework/base/batch.h"
#include "framework/base/registry.h"
#include "framework/base/sample_spec.h"

namespace phalanx {

class Tokenizer;  // datasets/text/tokenizer.h

/// What a dataset changes at random in its samples, done to a batch as a whole, wherever its tensors are. Thread-safe.
class BatchChanges {
 public:
  virtual ~BatchChanges() = default;

  /// Row i of `batch.inputs` is sample indices[i] as unchanged() gives it, and becomes, bit for bit, what gather()
  /// gives with this seed.
  virtual void apply(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const = 0;
};

/// A finite, indexable collection of samples. Thread-safe for reading: any number of threads may gather at once, each
/// into a batch of its own.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;  // samples, > 0

  virtual const SampleSpec& spec() const = 0;

  /// Writes sample indices[i] to row i of each of `batch.inputs` and `batch.targets` (dense, on the CPU, as many as
  /// spec() names), in one pass over the data. The tensors are reused when their shapes fit and nobody else holds them,
  /// and allocated anew otherwise; the other fields of `batch` are left alone. Throws c10::IndexError when an index is
  /// not in [0, size()); the rows are then undefined.
  ///
  /// A dataset that changes its samples at random (crops, flips) draws the changes of sample i from
  /// RandomStream(mix(seed, i)): so what is read depends on neither the number of ranks nor the order of reading. The
  /// loader passes another seed in every epoch; other datasets ignore it.
  virtual void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const = 0;

  /// Whether samples share data, as windows of a text that overlap do: then some of them are no test of a model that
  /// was trained on the others.
  virtual bool samples_overlap() const { return false; }

  /// The class of sample `index`, without reading the rest of it; -1: to be known by reading it alone, or it has none.
  virtual std::int64_t label(std::int64_t /*index*/) const { return -1; }

  /// How many positions of sample `index` are no padding; -1: all samples are as long as their spec says.
  virtual std::int64_t length(std::int64_t /*index*/) const { return -1; }

  /// Whether gather() gives other samples with another seed. A dataset that takes its samples from others says what
  /// these say, unless it draws something itself.
  virtual bool varies() const { return unchanged() != nullptr; }

  /// The same samples without changes at random; null: this dataset makes none.
  virtual std::shared_ptr<const Dataset> unchanged() const { return nullptr; }

  /// How samples of unchanged() become these; null: gather() alone can do that, or there are no changes.
  virtual std::shared_ptr<const BatchChanges> changes() const { return nullptr; }
};

/// The parts of a dataset, with one spec: to train on, to choose by (when to stop, which version is best; null where
/// the dataset has no such part), and to measure the result with.
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation{};
  std::shared_ptr<const Dataset> test;
  std::shared_ptr<const Tokenizer> tokenizer{};  // what samples of tokens stand for; null: no text that is known
  std::string fitted{};  // statistics of the training samples that all samples use, as JSON; runs save it
};

/// Datasets by name. Factories throw DataError when files are missing or malformed.
using Datasets = Registry<Splits()>;

}  // namespace phalanx
