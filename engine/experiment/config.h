#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/loss/loss.h"
#include "engine/optim/optimizer.h"
#include "engine/schedule/schedule.h"
#include "engine/sync/synchronizer.h"
#include "framework/collectives/selection/rule.h"
#include "framework/comm/backend.h"
#include "models/model.h"

namespace phalanx {

struct LaunchConfig {
  std::int64_t ranks = 1;
  std::vector<std::string> hosts;
  std::string with = "auto";
  std::int64_t threads = 0;

  template <class V>
  void visit(V& v) {
    v("ranks", ranks, "ranks to start where no launcher has started them", config::between(1, 4096));
    v("hosts", hosts, "where to start them, as name or name:slots; empty: here");
    v("with", with, "how to start them: local forks, mpi calls mpirun, auto is local on one host",
      config::one_of({"auto", "local", "mpi"}));
    v("threads", threads, "threads of LibTorch per rank; 0: the host's cores divided by its ranks",
      config::between(0, 1024));
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
    v("bucket_bytes", bucket_bytes, "parameters that travel together");
    v("progress_thread", progress_thread, "a thread that communicates while a rank computes; auto: if a core is free",
      config::one_of({"auto", "on", "off"}));
    v("check_collectives", check_collectives, "ranks compare what they call before they do it");
    v("selection", selection, "how operations are done; the first rule that matches wins");
    v("selection_file", selection_file, "rules behind them, as tools:tune has measured and saved them");
  }
};

struct LoaderConfig {
  bool shuffle = true;

  template <class V>
  void visit(V& v) {
    v("shuffle", shuffle, "a new order of the training samples in every epoch");
  }
};

struct MeshConfig {
  std::int64_t data = 0;

  template <class V>
  void visit(V& v) {
    v("data", data, "ranks that share a global batch; 0: all", config::at_least(0));
  }
};

struct TrainConfig {
  std::int64_t global_batch_size = 64;
  std::int64_t epochs = 1;
  std::int64_t max_steps = 0;

  template <class V>
  void visit(V& v) {
    v("global_batch_size", global_batch_size, "samples of one step over all ranks", config::at_least(1));
    v("epochs", epochs, "passes over the training split", config::at_least(1));
    v("max_steps", max_steps, "end after this many steps; 0: after the last epoch", config::at_least(0));
  }
};

struct EvaluateConfig {
  std::int64_t every_epochs = 1;
  std::int64_t global_batch_size = 256;

  template <class V>
  void visit(V& v) {
    v("every_epochs", every_epochs, "test after every n-th epoch and after the last; 0: after the last alone",
      config::at_least(0));
    v("global_batch_size", global_batch_size, "samples tested at a time over all ranks", config::at_least(1));
  }
};

struct CheckpointConfig {
  bool final_weights = true;

  template <class V>
  void visit(V& v) {
    v("final_weights", final_weights, "write weights.safetensors to the run folder at the end");
  }
};

struct WatchConfig {
  std::int64_t every_steps = 20;
  bool progress = true;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps, "a training line in metrics.jsonl after every n-th step", config::at_least(1));
    v("progress", progress, "show progress on standard output");
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
  Schedules::Choice schedule{"constant"};
  Synchronizers::Choice strategy{"all_reduce"};
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
    v("schedule", schedule, "how the learning rate changes");
    v("strategy", strategy, "how replicas agree");
    v("mesh", mesh, "how ranks are arranged");
    v("train", train, "how long");
    v("evaluate", evaluate, "when to test");
    v("checkpoint", checkpoint, "what is kept");
    v("watch", watch, "what is shown and logged");
    v("expect", expect, "what the result must be");
  }
};

/// Throws ConfigError for values that are fine each but not together.
void check(const ExperimentConfig& config);

}  // namespace phalanx
