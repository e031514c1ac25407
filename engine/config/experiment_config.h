// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/sample_order.h"
#include "engine/config/evaluate_config.h"
#include "engine/config/expectation.h"
#include "engine/config/init_config.h"
#include "engine/config/lora_config.h"
#include "engine/config/train_config.h"
#include "engine/config/watch_config.h"
#include "engine/loss/loss.h"
#include "engine/meters/meter_set.h"
#include "engine/optim/optimizer.h"
#include "engine/schedule/schedule.h"
#include "engine/strategies/strategies.h"
#include "engine/task/task.h"
#include "framework/base/plugins.h"
#include "framework/collectives/selection/rule.h"
#include "framework/comm/backend.h"
#include "framework/comm/device_kind.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/kernels/kernels.h"
#include "framework/partition/pipeline/schedule.h"
#include "models/model.h"

namespace phalanx {

struct LaunchConfig {
  std::int64_t ranks = 1;
  std::vector<std::string> hosts;
  std::string with = "auto";
  std::int64_t threads = 0;
  std::string bind_to = "none";
  double grace = 60;
  bool oversubscribe = false;

  template <class V>
  void visit(V& v) {
    v("ranks", ranks, "ranks to start if no launcher has started any", config::between(1, 4096));
    v("hosts", hosts, "hosts to start them on, as name or name:slots; empty: this host");
    v("with", with, "how to start them; local: forks, mpi: mpirun, auto: what hosts and backend require",
      config::one_of({"auto", "local", "mpi"}));
    v("threads", threads, "LibTorch threads per rank; 0: as many as it has cores, at most OMP_NUM_THREADS",
      config::between(0, 1024));
    v("bind_to", bind_to,
      "cores to bind each rank to; core: its own share of the host's cores, numa: the cores of a NUMA node",
      config::one_of({"none", "core", "numa"}));
    v("grace", grace, "seconds after SIGTERM to finish the step and save it; then the run ends; 0: no limit",
      config::at_least(0));
    v("oversubscribe", oversubscribe, "start more than 32 ranks per core of this host too");
  }
};

/// The ranks that are parameter servers and do not train.
struct RolesConfig {
  std::int64_t server = 0;
  std::vector<std::string> servers_at;
  std::string servers_file;
  std::string secret_file;
  std::int64_t replicas = 1;
  double failover = 5;

  template <class V>
  void visit(V& v) {
    v("server", server, "number of ranks, the last ones, that are parameter servers and do not train",
      config::at_least(0));
    v("servers_at", servers_at, "addresses of parameter servers that belong to no job (tools:ps)");
    v("servers_file", servers_file,
      "file with these addresses, one per line, in place of servers_at; when it changes, the run moves to the new "
      "servers");
    v("secret_file", secret_file, "file with the secret of these servers, which only its owner may read");
    v("replicas", replicas, "servers of roles.servers_at that hold each part; above 1, all but one of them may be lost",
      config::between(1, 2));
    v("failover", failover, "seconds after which another replica leads in place of a server that cannot be reached",
      config::above(0));
  }

  /// Returns true if there are servers that belong to no job.
  bool elsewhere() const { return !servers_at.empty() || !servers_file.empty(); }
};

struct FrameworkConfig {
  double timeout = 600;
  double warn_after = 20;
  std::string bucket_bytes = "default";
  std::string progress_thread = "auto";
  bool check_collectives = false;
  std::vector<SelectionRule> selection;
  std::string selection_file;

  template <class V>
  void visit(V& v) {
    v("timeout", timeout, "seconds that an operation waits for a peer", config::above(0));
    v("warn_after", warn_after, "seconds after which the console names the ranks that others wait for; 0: never",
      config::at_least(0));
    v("bucket_bytes", bucket_bytes,
      "size of gradient buckets, such as 4MB; default: 25 MB, or less where they are sent to other hosts during "
      "backward; auto: derived from a measured all-reduce");
    v("progress_thread", progress_thread, "thread that communicates while the rank computes; auto: if a core is free",
      config::one_of({"auto", "on", "off"}));
    v("check_collectives", check_collectives, "compare the ranks' calls before each operation");
    v("selection", selection, "rules that choose algorithms; the first that matches applies");
    v("selection_file", selection_file,
      "file of further rules, which are tried after `selection`, as written by //tools:tune");
  }
};

struct LoaderConfig {
  bool shuffle = true;
  Samplers::Choice sampler{"auto"};
  std::string last_batch = "smaller";
  std::int64_t prefetch = 0;
  std::string prefetch_bytes = "1GB";
  std::int64_t threads = 0;
  bool resident = false;
  std::string on_error = "fail";
  std::int64_t max_errors = 100;
  std::string shares = "equal";

  template <class V>
  void visit(V& v) {
    v("shuffle", shuffle, "shuffle the training samples in every epoch");
    v("sampler", sampler, "order in which training samples are taken");
    v("last_batch", last_batch,
      "last samples of an epoch, if they fill no batch; smaller: a smaller batch, drop: leave them out, pad: fill the "
      "batch with the samples that the epoch began with",
      config::one_of({"smaller", "drop", "pad"}));
    v("prefetch", prefetch, "batches to gather ahead in a background thread; 0: gather each when it is needed",
      config::between(0, 1000));
    v("prefetch_bytes", prefetch_bytes,
      "memory that batches gathered ahead may take on a rank, such as 256MB; one batch is always allowed; 0: no limit");
    v("threads", threads, "threads that read the samples of a batch ahead, with prefetch; 0: as many as the rank has",
      config::between(0, 1024));
    v("resident", resident,
      "on a device: read all training samples into its memory once, and make batches and transform images there");
    v("on_error", on_error,
      "what happens if a sample cannot be read; fail: the run ends, skip: the next sample takes its place",
      config::one_of({"fail", "skip"}));
    v("max_errors", max_errors, "samples of a split that a rank may skip before the run fails", config::at_least(1));
    v("shares", shares,
      "how the ranks divide a batch; equal, a share for each rank, such as 2:1, or measured: by how fast they are");
  }
};

struct MeshConfig {
  std::int64_t data = 0;
  std::int64_t pipe = 1;
  std::int64_t tensor = 1;
  std::int64_t expert = 1;
  std::int64_t context = 1;
  bool sequence_parallel = false;
  bool async_tensor = false;

  template <class V>
  void visit(V& v) {
    v("data", data, "ranks that each have samples of their own; 0: as many as the other axes leave",
      config::at_least(0));
    v("pipe", pipe, "ranks that each have some of the layers of a replica, and pass micro-batches on",
      config::at_least(1));
    v("tensor", tensor, "ranks that divide the layers of each replica among them", config::at_least(1));
    v("expert", expert, "ranks that have samples of their own and divide the experts", config::at_least(1));
    v("context", context, "ranks that have the same samples and divide the positions of their sequences",
      config::at_least(1));
    v("sequence_parallel", sequence_parallel,
      "the ranks of `tensor` divide the positions of what lies between the layers that they divide");
    v("async_tensor", async_tensor, "with sequence_parallel: exchange positions while products are computed");
  }
};

/// The division of a model by mesh.pipe, and the schedule of its ranks.
struct PipelineConfig {
  std::string schedule = "1f1b";
  std::int64_t micro_batches = 0;
  std::int64_t stages_per_rank = 1;
  std::int64_t memory_limit = 0;
  std::vector<std::string> cut;

  template <class V>
  void visit(V& v) {
    v("schedule", schedule, "order of forwards and backwards", config::one_of(pipeline::schedule_names()));
    v("micro_batches", micro_batches,
      "parts in which a rank's share of a batch goes through the pipeline; 0: four for each rank of mesh.pipe, or less "
      "where there are fewer samples",
      config::between(0, 65536));
    v("stages_per_rank", stages_per_rank, "stages that each rank has, with schedules that interleave them",
      config::between(1, 64));
    v("memory_limit", memory_limit,
      "micro-batches whose activations a rank may hold, with schedule: zero_bubble; 0: as many as with 1f1b",
      config::between(0, 65536));
    v("cut", cut, "first block of each stage except the first; empty: stages of equal cost");
  }

  /// Returns options for make_schedule() with `count` micro-batches on `ranks` ranks, without the costs, which the
  /// caller sets.
  pipeline::ScheduleOptions options(std::int64_t ranks, int count) const {
    return {.ranks = static_cast<int>(ranks),
            .stages_per_rank = static_cast<int>(stages_per_rank),
            .micro_batches = count,
            .memory_limit = static_cast<int>(memory_limit)};
  }
};

/// The division of some layers along the tensor axis.
struct PlanConfig {
  std::string layers;
  std::string style;

  template <class V>
  void visit(V& v) {
    v("layers", layers, "names of layers, where * is any part of a name");
    v("style", style, "how they are divided", config::one_of({"column", "column_gathered", "row", "vocabulary"}));
  }
};

struct ReplicaCheckConfig {
  std::int64_t every_steps = 0;
  bool repair = false;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps, "compare the replicas bit for bit after every n-th step; 0: never",
      config::at_least(0));
    v("repair", repair, "give replicas that differ the values of the majority, and continue");
  }
};

struct CheckpointConfig {
  std::int64_t every_steps = 0;
  std::int64_t every_epochs = 0;
  std::int64_t keep_last = 3;
  std::int64_t keep_best = 0;
  std::string best_by;
  std::string best_is = "auto";
  std::string resume = "none";
  bool final_weights = true;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps, "write a checkpoint after every n-th step; 0: not by steps", config::at_least(0));
    v("every_epochs", every_epochs, "write a checkpoint after every n-th epoch; 0: not by epochs", config::at_least(0));
    v("keep_last", keep_last, "newest checkpoints to keep", config::at_least(1));
    v("keep_best", keep_best, "best checkpoints to keep too; above 0, a checkpoint is written after every test",
      config::at_least(0));
    v("best_by", best_by, "metric that decides which checkpoint is best; empty: the task's own");
    v("best_is", best_is, "which value of this metric is best; auto: as the task defines it for its own metric",
      config::one_of({"auto", "highest", "lowest"}));
    v("resume", resume, "where to resume: none, auto (newest checkpoint of the run folder) or a checkpoint's path");
    v("final_weights", final_weights,
      "write weights.safetensors to the run folder at the end, and rows of embeddings on servers next to it");
  }
};

/// Returns "auto" and the names of all backends of this program.
inline std::vector<std::string> known_backends() {
  auto names = Backends::global().names();
  names.insert(names.begin(), "auto");
  return names;
}

/// Returns "auto", "cpu" and the names of all kinds of devices of this program.
inline std::vector<std::string> known_devices() {
  auto names = DeviceKinds::global().names();
  names.insert(names.begin(), {"auto", "cpu"});
  return names;
}

/// Section of one turn, for tasks that train different parameters in turns.
struct TurnConfig {
  Optimizers::Choice optimizer;

  template <class V>
  void visit(V& v) {
    v("optimizer", optimizer, "update rule of the parameters of this turn");
  }
};

/// The whole config of a run: the YAML file of tools:train.
struct ExperimentConfig {
  std::string name = "run";
  std::vector<std::string> plugins;
  std::int64_t seed = 1;
  LaunchConfig launch;
  RolesConfig roles;
  std::string device = "auto";
  std::string kernels = kernels::kAuto;
  std::string backend = "auto";
  FrameworkConfig framework;
  Models::Choice model;
  InitConfig init;
  LoraConfig lora;
  Datasets::Choice dataset{"digits"};
  LoaderConfig loader;
  Tasks::Choice task{"auto"};
  Losses::Choice loss{"auto"};
  Optimizers::Choice optimizer{"sgd"};
  std::map<std::string, TurnConfig> turns;
  ParameterGroups parameter_groups;
  Schedules::Choice schedule{"constant"};
  Strategies::Choice strategy{"auto"};
  std::string determinism = "run";
  ReplicaCheckConfig replica_check;
  MeshConfig mesh;
  PipelineConfig pipeline;
  std::vector<PlanConfig> plan;
  TrainConfig train;
  EvaluateConfig evaluate;
  CheckpointConfig checkpoint;
  WatchConfig watch;
  ExpectConfig expect;

  template <class V>
  void visit(V& v) {
    v("name", name, "name of the run, used for its folder");
    v("plugins", plugins,
      "shared libraries of your own that add models, datasets and so on; loaded before anything else");
    load_plugins(plugins);  // names that plugins register are valid from here on
    v("seed", seed, "random seed of initial values and sample order", config::at_least(0));
    v("launch", launch, "how to start the ranks");
    v("roles", roles, "what ranks do other than training");
    v("device", device, "where to compute; auto: on CUDA devices where there are any, otherwise on the CPU",
      config::one_of(known_devices()));
    v("kernels", kernels,
      "code that computes on the CPU; auto: what is fastest on this processor, libtorch: what LibTorch chooses",
      config::one_of({kernels::kAuto, kernels::kLibTorch}));
    v("backend", backend, "communication backend; auto: by where the ranks are", config::one_of(known_backends()));
    v("framework", framework, "communication settings");
    v("model", model, "model to train");
    v("init", init, "values that the model begins with, and parameters that are not trained");
    v("lora", lora, "low-rank adapters of linear layers, which are trained in place of the model");
    v("dataset", dataset, "data to train and test on");
    v("loader", loader, "data loading");
    v("task", task, "what the model is trained for; auto: the task of the dataset");
    v("loss", loss, "loss function to minimise; auto: the task's default");
    v("optimizer", optimizer, "update rule of the parameters");
    v("turns", turns, "optimizers of tasks that train in turns, by the turn's name; others use `optimizer`");
    v("parameter_groups", parameter_groups, "parameters with their own learning rate and weight decay");
    v("schedule", schedule, "learning-rate schedule");
    v("strategy", strategy, "parallel training strategy; auto: the exact one that suits where the ranks are");
    v("determinism", determinism,
      "which runs are bitwise identical; run: on the same number of ranks, world_size_invariant: on any number",
      config::one_of({"run", "world_size_invariant"}));
    v("replica_check", replica_check, "check that replicas are still equal");
    v("mesh", mesh, "arrangement of ranks on parallel axes");
    v("pipeline", pipeline, "how mesh.pipe divides the model, and its schedule");
    v("plan", plan, "layers that are divided along mesh.tensor; empty: as the model's own plan says");
    v("train", train, "length of the training, and how steps are computed");
    v("evaluate", evaluate, "when and what to test");
    v("checkpoint", checkpoint, "checkpointing and resuming");
    v("watch", watch, "monitoring and logging");
    v("expect", expect, "requirements on the result");
  }
};

/// Returns how many of the started ranks train, which are those that are not parameter servers.
inline std::int64_t training_ranks(const ExperimentConfig& config) { return config.launch.ranks - config.roles.server; }

/// Returns the mesh of the `ranks` ranks that train. Throws ConfigError if its size is not `ranks`.
MeshShape mesh_shape(const MeshConfig& mesh, std::int64_t ranks);

/// Throws ConfigError for values that are valid alone but not in combination.
void check(const ExperimentConfig& config);

}  // namespace phalanx
