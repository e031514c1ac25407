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

/// The random changes of a dataset's samples, applied to a whole batch on the device of its tensors. Thread-safe.
class BatchChanges {
 public:
  virtual ~BatchChanges() = default;

  /// Changes row i of `batch.inputs`, which is sample indices[i] as unchanged() returns it, into the sample that
  /// gather() returns for this seed, bit for bit.
  virtual void apply(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const = 0;
};

/// A finite, indexable collection of samples. Thread-safe for reading: any number of threads may call gather() at once,
/// each with its own batch.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;  // samples, > 0

  virtual const SampleSpec& spec() const = 0;

  /// Writes sample indices[i] to row i of each of `batch.inputs` and `batch.targets`, in one pass over the data. The
  /// tensors are dense CPU tensors, as many as spec() names. They are reused if their shapes fit and no one else holds
  /// them, and reallocated otherwise. The other fields of `batch` are not changed. Throws c10::IndexError if an index
  /// is not in [0, size()); the rows are then undefined.
  ///
  /// A dataset that changes its samples at random (crops, flips) draws the changes of sample i from
  /// RandomStream(mix(seed, i)), so a sample depends on neither the number of ranks nor the order of reading. The
  /// loader passes another seed in every epoch; other datasets ignore it.
  virtual void gather(std::span<const std::int64_t> indices, std::uint64_t seed, Batch& batch) const = 0;

  /// Returns true if samples share data, like overlapping windows of a text. Some of the samples then cannot serve to
  /// test a model that was trained on the others.
  virtual bool samples_overlap() const { return false; }

  /// Returns the class of sample `index` without reading the rest of it, or -1 if it has no class or must be read to
  /// know it.
  virtual std::int64_t label(std::int64_t /*index*/) const { return -1; }

  /// Returns the number of positions of sample `index` that are not padding, or -1 if all samples are as long as spec()
  /// says.
  virtual std::int64_t length(std::int64_t /*index*/) const { return -1; }

  /// Returns true if gather() returns different samples for different seeds. A dataset that wraps others returns true
  /// if one of these does, or if it draws something itself.
  virtual bool varies() const { return unchanged() != nullptr; }

  /// Returns the same samples without random changes, or null if this dataset makes none.
  virtual std::shared_ptr<const Dataset> unchanged() const { return nullptr; }

  /// Returns the changes that turn samples of unchanged() into samples of this dataset. Returns null if there are no
  /// changes or if only gather() can make them.
  virtual std::shared_ptr<const BatchChanges> changes() const { return nullptr; }
};

/// The parts of a dataset, all with the same spec: training samples, validation samples to choose by (when to stop,
/// which version is best), and test samples to measure the result. `validation` is null if the dataset has no such
/// part.
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation{};
  std::shared_ptr<const Dataset> test;
  std::shared_ptr<const Tokenizer> tokenizer{};  // encodes and decodes samples of text; null if there is no known text
  std::string fitted{};  // statistics of the training samples that all splits use, as JSON; saved with the run
};

/// Datasets by name. Factories throw DataError when files are missing or malformed.
using Datasets = Registry<Splits()>;

}  // namespace phalanx
