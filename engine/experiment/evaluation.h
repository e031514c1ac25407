// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "datasets/sampler.h"
#include "engine/evaluator.h"
#include "engine/experiment/config.h"
#include "engine/experiment/preparation.h"
#include "engine/meters/meter_set.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mesh.h"

namespace phalanx {

/// The purpose of a split. For training, epochs go in the order of loader.sampler; for testing, every sample is read
/// once.
enum class SplitUse { kTraining, kTesting };

/// Which samples of a split a rank takes, as the config says; arguments and errors as below.
DistributedSampler::Options split_options(const Dataset& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, SplitUse use, const Communicator& group,
                                          std::shared_ptr<const std::vector<std::int64_t>> shares = nullptr);

/// A loader of a split, as the config says. `group`: the ranks that share its batches; `shares`: see SampleShares.
/// Throws ConfigError where the dataset cannot be ordered as loader.sampler says.
std::unique_ptr<Loader> make_split_loader(const std::shared_ptr<const Dataset>& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, SplitUse use, const Communicator& group,
                                          std::shared_ptr<const std::vector<std::int64_t>> shares = nullptr);

/// The splits of a run: with what evaluate.validation holds out of training.
Splits with_held_out(const Splits& splits, const ExperimentConfig& config);

/// Measures a model on the splits that it is not trained on, every sample once.
class Evaluation {
 public:
  /// config.evaluate says how. Step and mesh must outlive it.
  Evaluation(const ExperimentConfig& config, const Splits& splits, const Preparation& preparation, Step& step,
             const Mesh& mesh);

  /// The split by which versions of the model are compared during training: "validation" if there is such a split,
  /// otherwise "test".
  const char* watched() const { return loaders_.contains("validation") ? "validation" : "test"; }
  bool has_validation() const { return loaders_.contains("validation"); }

  std::int64_t samples(const std::string& split) const { return samples_.at(split); }

  /// The names of what run() reads, with values of nothing. Collective.
  Readings names() { return meters_.take(*mesh_.control(kBatchAxes)); }

  /// Measures split "validation" or "test", with the epoch and step of `state` for hooks. Collective; the result is the
  /// same on all ranks.
  /// Rank 0 warns once of each reading that is not finite.
  Readings run(const std::string& split, const State& state);

  /// Returns true if a loss of the last run() was not finite and watch.nan_guard is on. The same on all ranks.
  bool diverged() const { return diverged_; }

  /// For hooks of the caller's own: what happens in run().
  Evaluator& evaluator() { return evaluator_; }

 private:
  void look_at(const Step::Result& result);
  bool any_not_finite();
  void warn_of(const std::string& split, const Readings& readings);

  const bool guarded_;
  bool diverged_ = false;
  at::Tensor not_finite_;            // [] bool, on the losses' device; undefined: no loss was seen
  std::set<std::string> warned_of_;  // readings, as "test/auc"
  Evaluator evaluator_;
  const Mesh& mesh_;
  MeterSet meters_;
  std::map<std::string, std::unique_ptr<Loader>> loaders_;  // by split, as the rest
  std::map<std::string, std::int64_t> samples_;
};

/// Throws the Error of an evaluation whose loss was not finite.
[[noreturn]] void throw_diverged(const std::string& split);

}  // namespace phalanx
