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
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// The purpose of a split. Training reads it in the order of loader.sampler; testing reads every sample once.
enum class SplitUse { kTraining, kTesting };

/// Returns which samples of a split each rank takes, as the config asks. Arguments and errors: see make_split_loader().
DistributedSampler::Options split_options(const Dataset& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, SplitUse use, const Communicator& group,
                                          std::shared_ptr<const std::vector<std::int64_t>> shares = nullptr);

/// Returns a loader of a split, as the config asks. `group`: the ranks that share its batches; `shares`: see
/// SampleShares. Throws ConfigError if the dataset cannot be ordered by loader.sampler.
std::unique_ptr<Loader> make_split_loader(const std::shared_ptr<const Dataset>& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, SplitUse use, const Communicator& group,
                                          std::shared_ptr<const std::vector<std::int64_t>> shares = nullptr);

/// Returns the splits of a run. If evaluate.validation is above 0, a part of the training split becomes the validation
/// split.
Splits with_held_out(const Splits& splits, const ExperimentConfig& config);

/// Measures a model on the splits that are not trained on, each sample once.
class Evaluation {
 public:
  /// `config.evaluate` selects meters and batch size. The step and the mesh must outlive the object.
  Evaluation(const ExperimentConfig& config, const Splits& splits, const Preparation& preparation, Step& step,
             const Mesh& mesh);

  /// Returns the split by which versions of the model are compared during training: "validation" if it exists,
  /// otherwise "test".
  const char* watched() const { return loaders_.contains("validation") ? "validation" : "test"; }
  bool has_validation() const { return loaders_.contains("validation"); }

  std::int64_t samples(const std::string& split) const { return samples_.at(split); }

  /// Returns the metrics that run() will have, with the values of meters that have seen nothing. Collective.
  Metrics names() { return meters_.take(*mesh_.control(kBatchAxes)); }

  /// Measures split "validation" or "test". Hooks see the epoch and step of `state`. Rank 0 warns once of each metric
  /// that is not finite. Collective; the result is the same on all ranks.
  Metrics run(const std::string& split, const State& state);

  /// Returns true if the last run() had a loss that was not finite and watch.nan_guard is on. The same on all ranks.
  bool diverged() const { return diverged_; }

  /// Returns the evaluator, so that callers can add hooks to run().
  Evaluator& evaluator() { return evaluator_; }

 private:
  void look_at(const Step::Result& result);
  bool any_not_finite();
  void warn_of(const std::string& split, const Metrics& metrics);

  const bool guarded_;
  bool diverged_ = false;
  at::Tensor not_finite_;            // [] bool, on the losses' device; undefined: no loss was seen
  std::set<std::string> warned_of_;  // names of metrics, as "test/auc"
  Evaluator evaluator_;
  const Mesh& mesh_;
  MeterSet meters_;
  std::map<std::string, std::unique_ptr<Loader>> loaders_;  // by split, like samples_
  std::map<std::string, std::int64_t> samples_;
};

/// Throws an Error which says that the loss of `split` is not finite.
[[noreturn]] void throw_diverged(const std::string& split);

}  // namespace phalanx
