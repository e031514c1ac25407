// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/agreement.h"

#include <ATen/ops/full.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/checkpoint/folder.h"
#include "engine/experiment/mesh_check.h"
#include "engine/sync/suitable_strategy.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/parallel/bucket_size.h"

namespace phalanx {
namespace {

constexpr std::string_view kField = "\nbucket_bytes: ";

// Returns the size of the buckets in a description. 0: the description is not of this strategy.
std::int64_t described_bytes(const std::string& text, Agreement agreement, const ExperimentConfig& config) {
  const auto at = text.rfind(kField);
  if (at == std::string::npos) return 0;
  std::from_chars(text.data() + at + kField.size(), text.data() + text.size(), agreement.bucket_bytes);
  return text == describe(agreement, config) ? agreement.bucket_bytes : 0;
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
std::int64_t bytes_so_far(const ExperimentConfig& config, const Agreement& agreement, const RunFolder& folder,
                          int ranks) {
  try {
    const auto checkpoint = likely_checkpoint(config.checkpoint.resume, folder);
    if (!checkpoint || checkpoint->manifest.ranks != ranks) return 0;
    const auto bytes = described_bytes(checkpoint->manifest.strategy, agreement, config);
    if (bytes > 0) log_info() << "buckets of " << format_bytes(bytes) << ", as in " << checkpoint->path;
    return bytes;
  } catch (const Error&) {
    return 0;  // choose() will report the error
  }
}

std::int64_t measured_bytes(std::int64_t parameters, Communicator& group) {
  const ReductionTime time = measure_all_reduce(group);
  const std::int64_t bytes = best_bucket_bytes(parameters, time);
  log_info() << format_text("buckets of %s: an all-reduce takes %.1f us plus %.3f ms per MB",
                            format_bytes(bytes).c_str(), time.latency * 1e6, time.seconds_per_byte * 1e3 * (1 << 20));
  return bytes;
}

Synchronizers::Choice choose_strategy(const ExperimentConfig& config, Communicator& replicas) {
  if (config.strategy.selected() != "auto") return config.strategy;
  auto strategy = config.determinism == "world_size_invariant" ? Synchronizers::Choice("all_reduce")
                                                               : suitable_strategy(placement_of(replicas));
  log_info() << "strategy: auto selects " << strategy.selected();
  return strategy;
}

}  // namespace

Agreement choose_agreement(const ExperimentConfig& config, const RunFolder& folder, std::int64_t parameters,
                           const Mesh& mesh) {
  Agreement agreement{.strategy = choose_strategy(config, *mesh.replicas())};
  if (config.framework.bucket_bytes == "default") {
    Communicator& replicas = *mesh.replicas();
    const bool overlapped = agreement.strategy.traits().overlaps_backward && !replicas.shares_memory();
    agreement.bucket_bytes = default_bucket_bytes(parameters, overlapped);
    if (overlapped) log_info() << "buckets of " << format_bytes(agreement.bucket_bytes) << ", to send during backward";
    return agreement;
  }
  if (config.framework.bucket_bytes != "auto") {
    agreement.bucket_bytes = parse_bytes(config.framework.bucket_bytes);
    return agreement;
  }
  Communicator& control = *mesh.control();
  const at::Tensor found = at::full({1}, 0, at::kLong);
  if (control.rank() == 0) found.fill_(bytes_so_far(config, agreement, folder, control.size()));
  control.broadcast(found, 0).wait();
  const auto so_far = found.item<std::int64_t>();
  agreement.bucket_bytes = so_far > 0 ? so_far : measured_bytes(parameters, *mesh.replicas());
  return agreement;
}

std::string describe(const Agreement& agreement, const ExperimentConfig& config) {
  std::string mesh;
  for (const auto& [axis, size] : divided_axes(config.mesh)) mesh += "\nmesh." + axis + ": " + std::to_string(size);
  if (config.mesh.sequence_parallel) mesh += "\nmesh.sequence_parallel: true";
  for (const auto& entry : config.plan) mesh += "\nplan: " + entry.layers + " " + entry.style;
  if (config.mesh.pipe > 1) {
    const auto& pipeline = config.pipeline;
    mesh += "\npipeline: " + pipeline.schedule + " " + std::to_string(pipeline.stages_per_rank) + " " +
            join(pipeline.cut, " ");
  }
  return config::dump_as("strategy", agreement.strategy) + "determinism: " + config.determinism + mesh +
         std::string(kField) + std::to_string(agreement.bucket_bytes) + "\n";
}

}  // namespace phalanx
