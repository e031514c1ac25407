#pragma once

#include <cstdint>
#include <string>

#include "engine/early_stop.h"
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
  double clip_norm = 0;
  double clip_value = 0;
  double ema_decay = 0;

  template <class V>
  void visit(V& v) {
    v("global_batch_size", global_batch_size, "samples of one step over all ranks", config::at_least(1));
    v("epochs", epochs, "passes over the training split", config::at_least(1));
    v("max_steps", max_steps, "end after this many steps; 0: after the last epoch", config::at_least(0));
    v("max_seconds", max_seconds, "save the run and end after so much time since the program was called; 0: no limit",
      config::at_least(0));
    v("early_stop", early_stop, "end when tests stop getting better");
    v("gradients", gradients, "what ranks make of theirs: the mean over the global batch, or that times the ranks",
      config::one_of({"mean", "sum"}));
    v("accumulate", accumulate, "parts in which a rank takes its share of a batch, to need less memory",
      config::between(1, 65536));
    v("data_parallel", data_parallel, "replicas in one process, each in a thread of its own, that share a rank's part",
      config::between(1, 1024));
    v("virtual_shards", virtual_shards,
      "parts of a batch that are computed each alone where determinism is world_size_invariant: a multiple of the "
      "ranks",
      config::between(1, 65536));
    v("precision", precision, "what matrix products and convolutions compute with; parameters are fp32 in any case",
      config::one_of({"fp32", "bf16", "fp16"}));
    v("loss_scale", loss_scale, "what keeps gradients of fp16 from vanishing");
    v("memory_format", memory_format, "how images and what layers make of them lie in memory",
      config::one_of({"contiguous", "channels_last"}));
    v("sync_batch_norm", sync_batch_norm, "batch norm takes mean and variance over the samples of all ranks");
    v("checkpoint_activations", checkpoint_activations,
      "parts of the model that backward computes again, so that what is in them need not be kept; 0: none",
      config::at_least(0));
    v("clip_norm", clip_norm, "largest norm of all gradients together; 0: any", config::at_least(0));
    v("clip_value", clip_value, "largest size of each gradient; 0: any", config::at_least(0));
    v("ema_decay", ema_decay,
      "test and keep a moving average of the parameters, of which an update keeps this share; 0: none",
      config::between(0, 1));
  }
};

}  // namespace phalanx
