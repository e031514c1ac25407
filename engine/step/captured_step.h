// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/GraphImplInterface.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/parallel/step.h"

namespace phalanx {

/// A step whose forward and backward are recorded once, as a graph of the device, and replayed for every other batch
/// like it: one call in place of a launch for each kernel. Batches are copied to where the recorded one lay. What is
/// recorded are kernels with the addresses and numbers that they had, so
/// - a batch of other shapes, or one that counts otherwise, is computed by the inner step;
/// - the first `warm_up` batches are, too: libraries of the device choose their kernels then;
/// - stages are told after the replay, when all of them are under way; nothing may communicate within the step;
/// - outputs of a result lie where the next replay writes, its loss does not.
/// Where no two batches in a row are alike, nothing is ever recorded, which the log says after 50.
///
/// The recorded kernels keep all memory of a step for as long as the step lives. On a current stream that is not the
/// device's default one, where nothing can be recorded. One thread at a time.
class CapturedStep final : public Step {
 public:
  /// `inner` must outlive it. `loss_scale`: what a recorded step has in it, too; null: none. Throws ConfigError where
  /// the device records nothing.
  CapturedStep(Step& inner, c10::Device device, std::function<double()> loss_scale = {}, std::int64_t warm_up = 3);

  /// Throws ConfigError where the step waits for the device, which cannot be recorded.
  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override { return inner_.evaluate(batch, watch); }

  std::int64_t replays() const { return replays_; }

 private:
  // All that a recording depends on.
  struct Likeness {
    std::vector<std::vector<std::int64_t>> sizes;
    std::vector<c10::ScalarType> dtypes;
    std::int64_t valid, first_row;
    double weight, weight_of_all, loss_scale;

    bool operator==(const Likeness&) const = default;
  };

  Likeness likeness_of(const Batch& batch) const;
  void record(const Batch& batch);
  void record_run();
  Result compute(const Batch& batch, const Watch& watch);
  void copy_in(const Batch& batch);
  Result replay(const Watch& watch);

  Step& inner_;
  c10::Device device_;
  std::function<double()> loss_scale_;
  std::int64_t warm_up_;
  std::optional<Likeness> last_;  // of the last batch
  std::int64_t alike_ = 0;        // batches in a row that were like it
  std::int64_t replays_ = 0, computed_ = 0;

  std::optional<Likeness> recorded_;
  Batch batch_;    // where the recording reads
  Result result_;  // where it writes
  std::unique_ptr<at::GraphImplInterface> graph_;
};

}  // namespace phalanx
