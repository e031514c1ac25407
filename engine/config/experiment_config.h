// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/config/checkpoint_config.h"
#include "engine/config/evaluate_config.h"
#include "engine/config/expectation.h"
#include "engine/config/faults_config.h"
#include "engine/config/framework_config.h"
#include "engine/config/init_config.h"
#include "engine/config/launch_config.h"
#include "engine/config/loader_config.h"
#include "engine/config/lora_config.h"
#include "engine/config/mesh_config.h"
#include "engine/config/pipeline_config.h"
#include "engine/config/roles_config.h"
#include "engine/config/train_config.h"
#include "engine/config/watch_config.h"
#include "engine/loss/loss.h"
#include "engine/optim/optimizer.h"
#include "engine/schedule/schedule.h"
#include "engine/strategies/strategies.h"
#include "engine/task/task.h"
#include "framework/base/plugins.h"
#include "framework/comm/backend.h"
#include "framework/comm/device_kind.h"
#include "framework/kernels/kernels.h"
#include "models/model.h"

namespace phalanx {

/// Section `replica_check` of a config.
struct ReplicaCheckConfig {
  std::int64_t every_steps = 100;
  bool repair = false;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps,
      "compare the replicas bit for bit after every n-th step: parameters, optimizer state and buffers; 0: never",
      config::at_least(0));
    v("repair", repair,
      "give replicas that differ the values of the majority, and continue; with launch.restarts, a rank that differs a "
      "second time ends the run");
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
  FaultsConfig faults;
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
    v("faults", faults, "what the ranks that are left do when one is lost");
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

}  // namespace phalanx
