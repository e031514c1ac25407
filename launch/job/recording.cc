// SPDX-License-Identifier: Apache-2.0
#include "launch/job/recording.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <utility>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/storage/crc32c.h"
#include "framework/base/version.h"
#include "framework/collectives/recording/recording_communicator.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/kernels/kernels.h"
#include "framework/parallel/digest.h"

namespace phalanx {
namespace {

/// A world of a rank that does not record, while others do.
class UnsharedWorld final : public Decorator {
 public:
  using Decorator::Decorator;
  bool takes(c10::DeviceType device) const override { return device == c10::DeviceType::CPU; }
  bool shares_memory() const override { return size() == 1; }

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override { return std::make_shared<UnsharedWorld>(std::move(child)); }
};

// Throws ConfigError for ranks that do not exist.
void check_ranks(const std::vector<std::int64_t>& ranks, int size) {
  for (const auto rank : ranks) {
    if (rank < size) continue;
    throw ConfigError("framework.record_ranks: there is no rank " + std::to_string(rank) +
                      ": ranks are numbered from 0 to " + std::to_string(size - 1));
  }
}

// Returns a checksum of the values that this rank updates.
std::uint64_t checksum_of(const std::vector<Slice>& slices) {
  std::uint64_t sum = 0;
  for (const auto& slice : slices) sum = sum * 31 + (slice.values.defined() ? digest(slice.values.contiguous()) : 0);
  return sum;
}

void name_memory(const std::vector<Slice>& slices, recording::NamedMemory& memory) {
  for (const auto& slice : slices) {
    for (const auto& segment : slice.segments) {
      for (const bool gradient : {false, true}) {
        const at::Tensor& run = gradient ? slice.gradients : slice.values;
        if (!run.defined() || !run.is_cpu() || run.numel() < segment.end()) continue;
        const auto item = run.element_size();
        memory.add((gradient ? "the gradient of " : "") + segment.name,
                   static_cast<const char*>(run.const_data_ptr()) + static_cast<std::size_t>(segment.begin) * item,
                   static_cast<std::size_t>(segment.count) * item);
      }
    }
  }
}

std::shared_ptr<const EndOfTraining> note_end(Engine& engine) {
  const auto end = std::make_shared<EndOfTraining>();
  engine.on(Event::kEnd, HookPhase::kLast,
            [end, &engine](State& state) { *end = {.step = state.step, .parameters = checksum_of(engine.slices())}; });
  return end;
}

}  // namespace

std::string describe_build() {
  return std::string("Phalanx ") + kVersion + ", LibTorch " + TORCH_VERSION + ", kernels " + kernels::kernels_in_use();
}

std::shared_ptr<recording::Recorder> start_recording(const ExperimentConfig& config, const RankInfo& rank_info,
                                                     const std::string& backend, const RunFolder& folder,
                                                     CommunicatorPtr& world) {
  const auto& framework = config.framework;
  if (framework.record.empty()) return nullptr;
  check_ranks(framework.record_ranks, world->size());
  const auto& ranks = framework.record_ranks;
  if (!ranks.empty() && std::ranges::find(ranks, world->rank()) == ranks.end()) {
    world = std::make_shared<UnsharedWorld>(std::move(world));
    return nullptr;
  }
  ExperimentConfig dumped = config;  // dump() visits it as load() does, which may write
  const std::string text = config::dump(dumped);
  auto recorder = std::make_shared<recording::Recorder>(framework.record,
                                                        recording::Header{.rank = world->rank(),
                                                                          .ranks = world->size(),
                                                                          .local_rank = rank_info.local_rank,
                                                                          .local_ranks = rank_info.local_size,
                                                                          .threads = at::get_num_threads(),
                                                                          .seed = config.seed,
                                                                          .backend = backend,
                                                                          .build = describe_build(),
                                                                          .run_folder = folder.path(),
                                                                          .config = text,
                                                                          .digest = crc32c(text.data(), text.size()),
                                                                          .last = framework.record_last});
  world = recording::record(std::move(world), recorder);
  log_info() << "records what it receives in " << framework.record;
  return recorder;
}

std::shared_ptr<const EndOfTraining> attach(const std::shared_ptr<recording::Recorder>& recorder, Engine& engine) {
  engine.on(Event::kStart, HookPhase::kLast,
            [recorder, &engine](State&) { name_memory(engine.slices(), recorder->memory()); });
  engine.on(Event::kSample, HookPhase::kFirst, [recorder](State& state) { recorder->begin_step(state.step + 1); });
  engine.on(Event::kUpdate, HookPhase::kLast,
            [recorder, &engine](State& state) { recorder->end_step(state.step, checksum_of(engine.slices())); });
  return note_end(engine);
}

std::shared_ptr<const EndOfTraining> attach(const std::shared_ptr<recording::Replay>& replay, Engine& engine) {
  if (replay->recording().begins_at() > 0) {
    engine.on(Event::kStart, HookPhase::kFirst, [replay](State&) { replay->detach(); });
  }
  engine.on(Event::kStart, HookPhase::kLast,
            [replay, &engine](State&) { name_memory(engine.slices(), replay->memory()); });
  engine.on(Event::kSample, HookPhase::kFirst, [replay](State& state) {
    if (replay->detached()) replay->attach();
    replay->begin_step(state.step + 1);
  });
  engine.on(Event::kUpdate, HookPhase::kLast,
            [replay, &engine](State& state) { replay->end_step(state.step, checksum_of(engine.slices())); });
  return note_end(engine);
}

std::function<std::optional<std::int64_t>()> recorded_bytes(const ExperimentConfig& config,
                                                            const CommunicatorPtr& world,
                                                            std::function<std::int64_t()> own) {
  if (config.framework.record.empty()) return [] { return std::optional<std::int64_t>(); };
  return [world, own = std::move(own)]() -> std::optional<std::int64_t> {
    const at::Tensor bytes = at::full({1}, own(), at::kLong);
    const MeasuredInputs measured;
    world->all_reduce(bytes, Reduction::kSum).wait();
    return bytes.item<std::int64_t>();
  };
}

}  // namespace phalanx
