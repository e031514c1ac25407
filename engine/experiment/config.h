#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/experiment/evaluate_config.h"
#include "engine/experiment/train_config.h"
#include "engine/loss/loss.h"
#include "engine/meters/meter_set.h"
#include "engine/optim/optimizer.h"
#include "engine/schedule/schedule.h"
#include "engine/sync/synchronizers.h"
#include "engine/watch/config.h"
#include "framework/collectives/selection/rule.h"
#include "framework/comm/backend.h"
#include "models/model.h"

namespace phalanx {

struct LaunchConfig {
  std::int64_t ranks = 1;
  std::vector<std::string> hosts;
  std::string with = "auto";
  std::int64_t threads = 0;
  std::string bind_to = "none";

  template <class V>
  void visit(V& v) {
    v("ranks", ranks, "ranks to start where no launcher has started them", config::between(1, 4096));
    v("hosts", hosts, "where to start them, as name or name:slots; empty: here");
    v("with", with, "how to start them: local forks, mpi calls mpirun, auto is local on one host",
      config::one_of({"auto", "local", "mpi"}));
    v("threads", threads, "threads of LibTorch per rank; 0: as many as there are cores for it, at most OMP_NUM_THREADS",
      config::between(0, 1024));
    v("bind_to", bind_to,
      "the cores that a rank keeps to: core its own part of the host's, numa those of its NUMA node",
      config::one_of({"none", "core", "numa"}));
  }
};

struct FrameworkConfig {
  double timeout = 600;
  std::string bucket_bytes = "25MB";
  std::string progress_thread = "auto";
  bool check_collectives = false;
  std::vector<SelectionRule> selection;
  std::string selection_file;

  template <class V>
  void visit(V& v) {
    v("timeout", timeout, "seconds that a communication waits for a peer", config::above(0));
    v("bucket_bytes", bucket_bytes, "parameters that travel together; auto: what suits an all-reduce of these ranks");
    v("progress_thread", progress_thread, "a thread that communicates while a rank computes; auto: if a core is free",
      config::one_of({"auto", "on", "off"}));
    v("check_collectives", check_collectives, "ranks compare what they call before they do it");
    v("selection", selection, "how operations are done; the first rule that matches wins");
    v("selection_file", selection_file, "rules behind them, as tools:tune has measured and saved them");
  }
};

struct LoaderConfig {
  bool shuffle = true;
  std::int64_t prefetch = 0;

  template <class V>
  void visit(V& v) {
    v("shuffle", shuffle, "a new order of the training samples in every epoch");
    v("prefetch", prefetch, "batches that a thread of its own gathers ahead; 0: none, each when it is needed",
      config::between(0, 1000));
  }
};

struct MeshConfig {
  std::int64_t data = 0;

  template <class V>
  void visit(V& v) {
    v("data", data, "ranks that share a global batch; 0: all", config::at_least(0));
  }
};

struct ReplicaCheckConfig {
  std::int64_t every_steps = 0;
  bool repair = false;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps, "compare the replicas' parameters, bit for bit, after every n-th step; 0: never",
      config::at_least(0));
    v("repair", repair, "give those that differ the values that most ranks have, and go on");
  }
};

struct CheckpointConfig {
  std::int64_t every_steps = 0;
  std::int64_t every_epochs = 0;
  std::int64_t keep_last = 3;
  std::int64_t keep_best = 0;
  std::string best_by = "accuracy";
  std::string best_is = "highest";
  std::string resume = "none";
  bool final_weights = true;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps, "save the run after every n-th step; 0: not by steps", config::at_least(0));
    v("every_epochs", every_epochs, "save it after every n-th epoch; 0: not by epochs", config::at_least(0));
    v("keep_last", keep_last, "newest checkpoints that stay", config::at_least(1));
    v("keep_best", keep_best, "best ones that stay too; above 0, every test is followed by one", config::at_least(0));
    v("best_by", best_by, "reading of the tests that says which is best");
    v("best_is", best_is, "its best value", config::one_of({"highest", "lowest"}));
    v("resume", resume, "where to go on: none, auto (the newest checkpoint of the run folder) or a checkpoint's path");
    v("final_weights", final_weights, "write weights.safetensors to the run folder at the end");
  }
};

struct ExpectConfig {
  double test_accuracy = 0;

  template <class V>
  void visit(V& v) {
    v("test_accuracy", test_accuracy, "fail when the final test accuracy is lower", config::between(0, 1));
  }
};

/// "auto", and the backends that this program has.
inline std::vector<std::string> known_backends() {
  auto names = Backends::global().names();
  names.insert(names.begin(), "auto");
  return names;
}

/// Everything that a run is made of: the YAML file of tools:train.
struct ExperimentConfig {
  std::string name = "run";
  std::int64_t seed = 1;
  LaunchConfig launch;
  std::string backend = "auto";
  FrameworkConfig framework;
  Models::Choice model;
  Datasets::Choice dataset{"digits"};
  LoaderConfig loader;
  Losses::Choice loss{"cross_entropy"};
  Optimizers::Choice optimizer{"sgd"};
  ParameterGroups parameter_groups;
  Schedules::Choice schedule{"constant"};
  Synchronizers::Choice strategy{"auto"};
  std::string determinism = "run";
  ReplicaCheckConfig replica_check;
  MeshConfig mesh;
  TrainConfig train;
  EvaluateConfig evaluate;
  CheckpointConfig checkpoint;
  WatchConfig watch;
  ExpectConfig expect;

  template <class V>
  void visit(V& v) {
    v("name", name, "of the run and its folder");
    v("seed", seed, "of initial values and of the order of samples", config::at_least(0));
    v("launch", launch, "how ranks are started");
    v("backend", backend, "how ranks talk; auto is the fastest that connects them", config::one_of(known_backends()));
    v("framework", framework, "communication");
    v("model", model, "what is trained");
    v("dataset", dataset, "what it is trained on");
    v("loader", loader, "how samples are read");
    v("loss", loss, "what training makes small");
    v("optimizer", optimizer, "how parameters change");
    v("parameter_groups", parameter_groups, "parameters that are updated otherwise than the rest");
    v("schedule", schedule, "how the learning rate changes");
    v("strategy", strategy, "how replicas agree; auto is exact, and suits where the ranks are");
    v("determinism", determinism,
      "what gives the same bits: run, another run on as many ranks; world_size_invariant, on any number of ranks too",
      config::one_of({"run", "world_size_invariant"}));
    v("replica_check", replica_check, "whether replicas are still equal");
    v("mesh", mesh, "how ranks are arranged");
    v("train", train, "how long, and how a step is computed");
    v("evaluate", evaluate, "when to test");
    v("checkpoint", checkpoint, "what is kept");
    v("watch", watch, "what is shown and logged");
    v("expect", expect, "what the result must be");
  }
};

/// Throws ConfigError for values that are fine each but not together.
void check(const ExperimentConfig& config);

}  // namespace phalanx
