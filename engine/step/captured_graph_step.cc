// SPDX-License-Identifier: Apache-2.0
#include "engine/step/captured_graph_step.h"

#include <string>
#include <utility>

#include "framework/base/device_memory.h"
#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {
namespace {

std::unique_ptr<DeviceGraph> make_graph(const c10::Device& device) {
  if (auto graph = make_device_graph(device.type())) return graph;
  throw ConfigError("train.cuda_graph: the device " + device.str() + " cannot record graphs; remove it");
}

// Ends a recording that failed, so that the stream executes work again.
void end_recording(DeviceGraph& graph) {
  try {
    graph.capture_end();
  } catch (const c10::Error& error) {
    log_info() << "error while ending a failed recording: " << error.what_without_backtrace();
  }
}

}  // namespace

CapturedGraphStep::CapturedGraphStep(Step& inner, c10::Device device, std::int64_t warm_up,
                                     std::shared_ptr<RecordedUpdate> update, UnusedParameters* unused)
    : StepDecorator(inner), device_(device), warm_up_(warm_up), update_(std::move(update)), unused_(unused) {
  (void)make_graph(device_);
}

CapturedGraphStep::BatchSignature CapturedGraphStep::signature_of(const Batch& batch) const {
  BatchSignature all{.sizes = {},
                     .dtypes = {},
                     .valid = batch.valid,
                     .first_row = batch.first_row,
                     .weight = batch.weight(),
                     .weight_of_all = batch.weight_of_all()};
  for (const auto* tensors : {&batch.inputs, &batch.targets}) {
    for (const auto& tensor : *tensors) {
      all.sizes.push_back(tensor.sizes().vec());
      all.dtypes.push_back(tensor.scalar_type());
    }
  }
  return all;
}

Step::Result CapturedGraphStep::run(const Batch& batch, const Watch& watch) {
  auto signature = signature_of(batch);
  repeats_ = last_ == signature ? repeats_ + 1 : 1;
  last_ = signature;
  const Course course = choose(batch, signature);
  if (course == Course::kLaunch) return compute(batch, watch);
  if (course != Course::kReplay) {
    record(batch, course == Course::kRecord);
    recorded_ = std::move(signature);
  }
  copy_in(batch);
  return replay(watch);
}

Course CapturedGraphStep::choose(const Batch& batch, const BatchSignature& signature) {
  const bool has_graph = recorded_ == signature;
  const bool may_record = has_graph || (repeats_ > warm_up_ && can_be_recorded(batch));
  if (update_) return update_->agree(has_graph, may_record);
  return has_graph ? Course::kReplay : may_record ? Course::kRecordBackward : Course::kLaunch;
}

// A step of padding uses no parameters, so what the ranks agree on would change with the samples of other ranks.
bool CapturedGraphStep::can_be_recorded(const Batch& batch) const {
  return update_ == nullptr || (batch.valid > 0 && update_->is_ready());
}

// A graph has memory of its own. Memory that earlier steps have cached, and that of the old graph, would stay
// allocated.
void CapturedGraphStep::free_other_memory() {
  recorded_.reset();
  graph_.reset();
  batch_ = {};
  result_ = {};
  release_cached_memory(device_);
}

void CapturedGraphStep::record(const Batch& batch, bool updates) {
  free_other_memory();
  graph_ = make_graph(device_);
  batch_ = batch;
  for (auto* tensors : {&batch_.inputs, &batch_.targets}) {
    for (auto& tensor : *tensors) tensor = tensor.clone();
  }
  if (updates) update_->prepare();
  graph_->capture_begin();
  try {
    record_run(updates);
  } catch (...) {
    end_recording(*graph_);
    graph_.reset();
    throw;
  }
  graph_->capture_end();
}

void CapturedGraphStep::record_run(bool updates) {
  try {
    result_ = inner().run(batch_, [](Stage, const Result&) {});
    if (unused_) unused_->keep_recorded();
    if (updates) update_->record();
    result_.updated = updates;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    throw ConfigError(std::string("train.cuda_graph: a step of this model, its loss or its update does something that "
                                  "a graph cannot record (") +
                      error.what_without_backtrace() + "); remove it");
  }
}

Step::Result CapturedGraphStep::compute(const Batch& batch, const Watch& watch) {
  constexpr std::int64_t kPatience = 50;
  if (++computed_ == kPatience && replays_ == 0) {
    log_warning() << "train.cuda_graph: none of " << kPatience
                  << " batches had the same sizes and as many counted elements as the " << warm_up_ << " before it"
                  << (update_ ? " on all ranks" : "") << ", so no step is replayed";
  }
  return inner().run(batch, watch);
}

void CapturedGraphStep::copy_in(const Batch& batch) {
  const auto copy = [](Tensors& to, const Tensors& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i], /*non_blocking=*/true);
  };
  copy(batch_.inputs, batch.inputs);
  copy(batch_.targets, batch.targets);
}

Step::Result CapturedGraphStep::replay(const Watch& watch) {
  if (result_.updated) update_->prepare();
  graph_->replay();
  ++replays_;
  Result result = result_;
  result.loss = result_.loss.clone();
  for (const auto stage : {Stage::kForward, Stage::kForwardCriterion, Stage::kBackwardCriterion, Stage::kBackward}) {
    watch(stage, result);
  }
  if (result.updated) update_->replayed();
  return result;
}

}  // namespace phalanx
