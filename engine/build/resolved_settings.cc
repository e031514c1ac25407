// SPDX-License-Identifier: Apache-2.0
#include "engine/build/resolved_settings.h"

#include <ATen/ops/full.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/checkpoint/folder.h"
#include "engine/config/mesh_config.h"
#include "engine/strategies/suitable_strategy.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/partition/bucket_size.h"
#include "models/trainable_parameters.h"

namespace phalanx {
namespace {

constexpr std::string_view kField = "\nbucket_bytes: ";

// Returns the size of the buckets in a description. 0: the description is not of this strategy.
std::int64_t described_bytes(const std::string& text, ResolvedSettings settings, const ExperimentConfig& config) {
  const auto at = text.rfind(kField);
  if (at == std::string::npos) return 0;
  std::from_chars(text.data() + at + kField.size(), text.data() + text.size(), settings.bucket_bytes);
  return text == describe(settings, config) ? settings.bucket_bytes : 0;
}

// Checkpoints of earlier versions have no level, which was always host.
std::string strategy_text(const Strategies::Choice& strategy) {
  constexpr std::string_view kDefaultLevel = "\n  level: host";
  std::string text = config::dump_as("strategy", strategy);
  if (const auto at = text.find(kDefaultLevel); at != std::string::npos) text.erase(at, kDefaultLevel.size());
  return text;
}

// Levels decide in which order ranks add. Empty without levels, as in checkpoints of earlier versions.
std::string topology_text(const TopologyConfig& topology) {
  return topology.levels.empty() ? "" : "\n" + config::dump_as("topology", topology);
}

// Returns a checkpoint of the run, not necessarily the one that will be restored: that one is chosen and verified
// later. All checkpoints of a run have the same buckets.
std::optional<Checkpoint> likely_checkpoint(const std::string& resume, const RunFolder& folder) {
  if (resume == "none") return std::nullopt;
  if (resume != "auto") return read_checkpoint(resume);
  auto all = CheckpointFolder(folder.checkpoints()).list([](const std::string&) {});
  return all.empty() ? std::nullopt : std::optional(std::move(all.front()));
}

// Returns the size of the buckets in the checkpoint to resume from. 0: there is no checkpoint, or its size is unknown.
std::int64_t bytes_so_far(const ExperimentConfig& config, const ResolvedSettings& settings, const RunFolder& folder,
                          int ranks) {
  try {
    const auto checkpoint = likely_checkpoint(config.checkpoint.resume, folder);
    if (!checkpoint || checkpoint->manifest.ranks != ranks) return 0;
    const auto bytes = described_bytes(checkpoint->manifest.strategy, settings, config);
    if (bytes > 0) log_info() << "buckets of " << format_bytes(bytes) << ", as in " << checkpoint->path;
    return bytes;
  } catch (const Error&) {
    return 0;  // choose() will report the error
  }
}

std::int64_t bytes_to_train(const Model& model) {
  std::int64_t bytes = 0;
  for (const auto& [name, parameter] : trainable_parameters(model)) {
    bytes += static_cast<std::int64_t>(parameter.nbytes());
  }
  return bytes;
}

std::int64_t measured_bytes(std::int64_t parameters, Communicator& group, const c10::Device& device) {
  const ReductionTime time = measure_all_reduce(group, device);
  const std::int64_t bytes = best_bucket_bytes(parameters, time);
  log_info() << format_text("buckets of %s: an all-reduce takes %.1f us plus %.3f ms per MB",
                            format_bytes(bytes).c_str(), time.latency * 1e6, time.seconds_per_byte * 1e3 * (1 << 20));
  return bytes;
}

Strategies::Choice choose_strategy(const ExperimentConfig& config, Communicator& replicas) {
  if (config.strategy.selected() != "auto") return config.strategy;
  // A rank that may be lost must have nothing that the others lack. Not every graph can contain the exchange of
  // gradients, which overlapped would begin in backward.
  const bool all_reduce =
      config.determinism == "world_size_invariant" || config.faults.shrinks() || config.train.cuda_graph;
  auto strategy = all_reduce ? Strategies::Choice("all_reduce") : suitable_strategy(placement_of(replicas));
  log_info() << "strategy: auto selects " << strategy.selected();
  return strategy;
}

}  // namespace

ResolvedSettings resolve_settings(const ExperimentConfig& config, const RunFolder& folder, const PartitionedModel& part,
                                  c10::Device device) {
  Communicator& replicas = *part.mesh.replicas();
  ResolvedSettings settings{.strategy = choose_strategy(config, replicas)};
  const auto& bucket_bytes = config.framework.bucket_bytes;
  if (bucket_bytes == "default") {
    const bool overlapped = settings.strategy.traits().overlaps_backward && !replicas.shares_memory();
    settings.bucket_bytes = default_bucket_bytes(bytes_to_train(*part.model), overlapped, device);
    if (overlapped) log_info() << "buckets of " << format_bytes(settings.bucket_bytes) << ", to send during backward";
    return settings;
  }
  if (bucket_bytes != "auto") {
    settings.bucket_bytes = parse_bytes(bucket_bytes);
    return settings;
  }
  Communicator& control = *part.mesh.control();
  const at::Tensor found = at::full({1}, 0, at::kLong);
  if (control.rank() == 0) found.fill_(bytes_so_far(config, settings, folder, control.size()));
  const MeasuredInputs measured;  // the checkpoints of the run folder
  control.broadcast(found, 0).wait();
  const auto so_far = found.item<std::int64_t>();
  settings.bucket_bytes = so_far > 0 ? so_far : measured_bytes(bytes_to_train(*part.model), replicas, device);
  return settings;
}

std::string describe(const ResolvedSettings& settings, const ExperimentConfig& config) {
  std::string mesh;
  for (const auto& [axis, size] : model_parallel_axes(config.mesh))
    mesh += "\nmesh." + axis + ": " + std::to_string(size);
  if (config.mesh.sequence_parallel) mesh += "\nmesh.sequence_parallel: true";
  for (const auto& entry : config.plan) mesh += "\nplan: " + entry.layers + " " + entry.style;
  if (config.mesh.pipe > 1) {
    const auto& pipeline = config.pipeline;
    mesh += "\npipeline: " + pipeline.schedule + " " + std::to_string(pipeline.stages_per_rank) + " " +
            join(pipeline.cut, " ");
  }
  return strategy_text(settings.strategy) + "determinism: " + config.determinism + mesh +
         topology_text(config.framework.topology) + std::string(kField) + std::to_string(settings.bucket_bytes) + "\n";
}

}  // namespace phalanx
