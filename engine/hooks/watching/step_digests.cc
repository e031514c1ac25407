// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/step_digests.h"

#include <cinttypes>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "engine/optim/decorator.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"
#include "framework/parallel/digest.h"

namespace phalanx {
namespace {

constexpr const char* kWithout = "the run continues without digests";

/// Takes the digests of the gradients before each update.
class DigestedUpdate final : public OptimizerDecorator {
 public:
  DigestedUpdate(std::unique_ptr<Optimizer> inner, StepDigests& digests)
      : OptimizerDecorator(std::move(inner)), digests_(digests) {}

  void update() override {
    if (digests_.due()) {
      for (const auto& slice : slices()) digests_.add("gradients", slice.segments, slice.gradients);
    }
    inner().update();
  }

  std::string why_not_recorded() const override { return "train.digests reads gradients between backward and update"; }

 private:
  StepDigests& digests_;
};

// Returns the lines of the steps up to `step`. A last line that is not complete is left out.
std::string lines_up_to(std::int64_t step, const std::string& path) {
  std::string kept;
  if (step == 0 || !std::filesystem::exists(path)) return kept;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    std::int64_t number = 0;
    if (std::istringstream(line) >> number && number <= step) kept += line + '\n';
  }
  return kept;
}

}  // namespace

StepDigests::StepDigests(std::int64_t every, std::string folder, int rank)
    : every_(every), folder_(std::move(folder)), path_(folder_ + "/rank" + std::to_string(rank) + ".txt") {}

std::unique_ptr<Optimizer> StepDigests::watch(std::unique_ptr<Optimizer> optimizer) {
  if (every_ == 0) return optimizer;
  return std::make_unique<DigestedUpdate>(std::move(optimizer), *this);
}

void StepDigests::attach(Engine& engine) {
  if (every_ == 0) return;
  engine.on(Event::kStart, HookPhase::kLast, [this](State& state) { start(state.step); });
  engine.on(Event::kSample, HookPhase::kLast, [this](State& state) {
    step_ = state.step + 1;
    due_ = step_ % every_ == 0;
    if (!due_) return;
    const Batch& batch = state.batch;
    for (std::size_t i = 0; i < batch.inputs.size(); ++i) add("batch", "input " + std::to_string(i), batch.inputs[i]);
    for (std::size_t i = 0; i < batch.targets.size(); ++i)
      add("batch", "target " + std::to_string(i), batch.targets[i]);
    add("batch", "weights", batch.row_weights);
  });
  engine.on(Event::kBackward, HookPhase::kLast, [this](State& state) {
    if (!due_) return;
    const auto& outputs = state.result.outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) add("outputs", "output " + std::to_string(i), outputs[i]);
    add("loss", "loss", state.result.loss);
  });
  engine.on(Event::kUpdate, HookPhase::kLast, [this, &engine](State&) {
    if (!due_) return;
    for (const auto& slice : engine.slices()) add("parameters", slice.segments, slice.values);
    flush();
    due_ = false;
  });
}

void StepDigests::add(const char* phase, const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  lines_ += format_text("%" PRId64 "\t%s\t%016" PRIx64 "\t", step_, phase, digest(tensor.contiguous())) + name + '\n';
}

void StepDigests::add(const char* phase, const std::vector<Segment>& segments, const at::Tensor& run) {
  if (!run.defined()) return;
  for (const auto& segment : segments) {
    const std::string part = segment.whole() ? ""
                                             : '[' + std::to_string(segment.offset) + ", " +
                                                   std::to_string(segment.offset + segment.count) + ')';
    add(phase, segment.name + part, run.narrow(0, segment.begin, segment.count));
  }
}

void StepDigests::start(std::int64_t step) {
  best_effort_.attempt(
      [&] {
        std::error_code error;
        std::filesystem::create_directories(folder_, error);
        if (error) throw DataError(folder_ + ": cannot be created: " + error.message());
        write_atomically(path_, lines_up_to(step, path_));
      },
      kWithout);
}

void StepDigests::flush() {
  const std::string lines = std::exchange(lines_, "");
  best_effort_.attempt(
      [&] {
        std::ofstream file(path_, std::ios::app);
        file << lines << std::flush;
        if (!file) throw DataError(path_ + ": cannot be written");
      },
      kWithout);
}

}  // namespace phalanx
