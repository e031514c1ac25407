// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/meters/meter_set.h"

namespace phalanx {

/// Settings of the metrics endpoint on rank 0; see PrometheusEndpoint.
struct PrometheusConfig {
  std::int64_t port = 0;
  std::string address = "127.0.0.1";

  template <class V>
  void visit(V& v) {
    v("port", port, "port on which rank 0 serves /metrics to Prometheus; 0: off", config::between(0, 65535));
    v("address", address, "address to listen on; 0.0.0.0: all interfaces");
  }
};

/// Settings of NanGuard.
struct NanGuardConfig {
  std::int64_t every_steps = 50;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps,
      "after every n-th step, check gradients, parameters and all losses since the last check; 0: never",
      config::at_least(0));
  }
};

/// Settings of GradientNorms.
struct GradientNormsConfig {
  std::int64_t every_steps = 0;
  double threshold = 10;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps,
      "after every n-th step, compare the norms of each rank's gradients in these steps with those of the other ranks "
      "and of earlier steps, and name ranks that stand out; 0: never",
      config::at_least(0));
    v("threshold", threshold, "distance from the median, in deviations, at which a rank stands out", config::above(0));
  }
};

/// Settings of Profiler. Steps are numbered as in metrics.jsonl: the first one is 1.
struct ProfileConfig {
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool operators = true;

  template <class V>
  void visit(V& v) {
    v("from", from, "first step to record in trace.json; 0: no trace", config::at_least(0));
    v("to", to, "last step to record", config::at_least(0));
    v("operators", operators, "record LibTorch operators too");
  }
};

struct WatchConfig {
  std::int64_t every_steps = 20;
  std::vector<MeterConfig> meters;
  bool progress = true;
  bool report = true;
  bool tensorboard = false;
  PrometheusConfig prometheus;
  NanGuardConfig nan_guard;
  GradientNormsConfig gradient_norms;
  ProfileConfig profile;
  bool nvtx = false;
  std::string on_end;
  double on_end_timeout = 60;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps, "write a training line to metrics.jsonl after every n-th step", config::at_least(1));
    v("meters", meters, "metrics during training; empty: the metrics of the task");
    v("progress", progress, "show progress on standard output");
    v("report", report, "write report.html at the end");
    v("tensorboard", tensorboard, "also write TensorBoard event files");
    v("prometheus", prometheus, "metrics endpoint for Prometheus");
    v("nan_guard", nan_guard, "check for non-finite values");
    v("gradient_norms", gradient_norms, "find ranks whose gradients are unlike those of others");
    v("profile", profile, "window of steps to trace");
    v("nvtx", nvtx, "on a device: show operators, forward, backward and update by name in NVIDIA's tools");
    v("on_end", on_end,
      "shell command to run when the run has ended, even if it has failed; gets its summary as JSON on standard input");
    v("on_end_timeout", on_end_timeout, "seconds after which this command is killed", config::above(0));
  }
};

}  // namespace phalanx
