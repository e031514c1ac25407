// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/step/recorded_update.h"
#include "engine/strategies/unused_parameters.h"
#include "framework/base/device_graph.h"
#include "framework/parallel/step_decorator.h"

namespace phalanx {

/// A step whose forward and backward are recorded once as a graph of the device, and replayed for every other batch
/// like the recorded one: one call replaces a launch per kernel. With a RecordedUpdate, the graph is the whole step: it
/// also exchanges the gradients of the ranks and updates the parameters (Result::updated). Batches are copied to the
/// memory of the recorded one. The recording contains kernels with their addresses and numbers, which has these
/// consequences:
/// - A batch with other shapes, or whose samples count differently, is computed by the inner step. With a
///   RecordedUpdate, so are the batches of the other ranks in this step.
/// - The first `warm_up` batches are computed by it too, because libraries of the device choose their kernels then.
/// - Stages are reported after the replay was launched, so an observer of Stage::kBackward sees no gradients if the
///   graph is the whole step. Its learning rate must be set before the step.
/// - Without a RecordedUpdate, nothing may communicate within the step. With one, batches of padding are not recorded.
/// - The next replay overwrites the outputs of a result, but not its loss.
/// If batches differ so often that nothing was replayed among the first 50 computed ones, a warning is logged.
///
/// The recorded kernels keep all memory of a step as long as the step lives. Requires that the current stream is not
/// the device's default stream, on which nothing can be recorded. Must be used by one thread at a time.
class CapturedGraphStep final : public StepDecorator {
 public:
  static constexpr std::int64_t kWarmUp = 3;

  /// `update`: null if the graph ends with backward. `unused`: is told when a step was recorded; null: nothing looks
  /// for unused parameters. `inner` and `unused` must outlive the object. Throws ConfigError if the device cannot
  /// record graphs.
  CapturedGraphStep(Step& inner, c10::Device device, std::int64_t warm_up = kWarmUp,
                    std::shared_ptr<RecordedUpdate> update = nullptr, UnusedParameters* unused = nullptr);

  /// Throws ConfigError if the step waits for the device, which cannot be recorded. Collective with a RecordedUpdate:
  /// all of its ranks must call it equally often.
  Result run(const Batch& batch, const Watch& watch) override;

  std::int64_t replays() const { return replays_; }

 private:
  // The properties of a batch on which a recording depends.
  struct BatchSignature {
    std::vector<std::vector<std::int64_t>> sizes;
    std::vector<c10::ScalarType> dtypes;
    std::int64_t valid, first_row;
    double weight, weight_of_all;

    bool operator==(const BatchSignature&) const = default;
  };

  BatchSignature signature_of(const Batch& batch) const;
  Course choose(const Batch& batch, const BatchSignature& signature);
  bool can_be_recorded(const Batch& batch) const;
  void free_other_memory();
  void record(const Batch& batch, bool updates);
  void record_run(bool updates);
  Result compute(const Batch& batch, const Watch& watch);
  void copy_in(const Batch& batch);
  Result replay(const Watch& watch);

  c10::Device device_;
  std::int64_t warm_up_;
  std::shared_ptr<RecordedUpdate> update_;  // null: the graph ends with backward
  UnusedParameters* unused_;                // may be null
  std::optional<BatchSignature> last_;      // of the last batch
  std::int64_t repeats_ = 0;                // number of consecutive batches with this signature
  std::int64_t replays_ = 0, computed_ = 0;

  std::optional<BatchSignature> recorded_;
  Batch batch_;    // the recording reads from here
  Result result_;  // the recording writes to here; `updated` is true if it contains the update
  std::unique_ptr<DeviceGraph> graph_;
};

}  // namespace phalanx
