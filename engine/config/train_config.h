// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/config/early_stop_config.h"
#include "engine/optim/loss_scale.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// Section `train` of a config.
struct TrainConfig {
  std::int64_t global_batch_size = 64;
  std::int64_t epochs = 1;
  std::int64_t max_steps = 0;
  double max_seconds = 0;
  EarlyStopConfig early_stop;
  std::string gradients = "mean";
  std::int64_t accumulate = 1;
  std::int64_t data_parallel = 1;
  std::int64_t virtual_shards = 8;
  std::string precision = "fp32";
  LossScaleConfig loss_scale;
  std::string memory_format = "contiguous";
  bool sync_batch_norm = false;
  std::int64_t checkpoint_activations = 0;
  bool offload_activations = false;
  bool cuda_graph = false;
  bool deterministic = false;
  double clip_norm = 0;
  double clip_value = 0;
  double ema_decay = 0;
  std::int64_t digests = 0;

  template <class V>
  void visit(V& v) {
    v("global_batch_size", global_batch_size, "samples per step over all ranks", config::at_least(1));
    v("epochs", epochs, "passes over the training split", config::at_least(1));
    v("max_steps", max_steps, "stop after this many steps; 0: after the last epoch", config::at_least(0));
    v("max_seconds", max_seconds, "save the run and stop this many seconds after the program started; 0: no limit",
      config::at_least(0));
    v("early_stop", early_stop, "early stopping");
    v("gradients", gradients, "reduction over ranks; mean: over the global batch, sum: that times the number of ranks",
      config::one_of({"mean", "sum"}));
    v("accumulate", accumulate, "gradient accumulation: parts in which a rank processes its share of a batch",
      config::between(1, 65536));
    v("data_parallel", data_parallel, "replicas per rank, each in a thread, that divide the rank's share of a batch",
      config::between(1, 1024));
    v("virtual_shards", virtual_shards,
      "parts of a batch that are computed independently with determinism: world_size_invariant; a multiple of the "
      "number of ranks",
      config::between(1, 65536));
    v("precision", precision, "precision of matrix products and convolutions; with fp64 also of parameters, else fp32",
      config::one_of({"fp32", "tf32", "bf16", "fp16", "fp64"}));
    v("loss_scale", loss_scale, "dynamic loss scaling, for fp16");
    v("memory_format", memory_format, "memory layout of images and activations",
      config::one_of({"contiguous", "channels_last"}));
    v("sync_batch_norm", sync_batch_norm, "compute batch norm statistics over the samples of all ranks");
    v("checkpoint_activations", checkpoint_activations,
      "activation checkpointing: segments of the model that backward recomputes to save memory; 0: none",
      config::at_least(0));
    v("offload_activations", offload_activations,
      "on a device: keep the activations that checkpoint_activations keeps in memory of the host until backward");
    v.renamed("capture", "cuda_graph");
    v("cuda_graph", cuda_graph,
      "on a device: record a step once, as a graph (CUDA Graph), and replay it in every step");
    v("deterministic", deterministic,
      "on a device: only kernels that give the same bits in every run, though some are slower; on the CPU all do");
    v("clip_norm", clip_norm, "maximum norm of all gradients together; 0: no clipping", config::at_least(0));
    v("clip_value", clip_value, "maximum absolute value of a gradient element; 0: no clipping", config::at_least(0));
    v("ema_decay", ema_decay,
      "decay of a moving average of the parameters, which is tested and saved instead of them; 0: none",
      config::between(0, 1));
    v("digests", digests,
      "write digests of the batch, the loss, the gradients and the parameters of every n-th step to the run folder, "
      "for "
      "//tools:diff_runs; 0: never",
      config::at_least(0));
  }
};

}  // namespace phalanx
