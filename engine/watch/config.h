#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/meters/meter_set.h"

namespace phalanx {

/// The endpoint of metrics on rank 0; see PrometheusEndpoint.
struct PrometheusConfig {
  std::int64_t port = 0;
  std::string address = "127.0.0.1";

  template <class V>
  void visit(V& v) {
    v("port", port, "where rank 0 serves metrics to Prometheus, as /metrics; 0: nowhere", config::between(0, 65535));
    v("address", address, "of the interface that it listens at; 0.0.0.0: all of them");
  }
};

/// See NanGuard.
struct NanGuardConfig {
  std::int64_t every_steps = 50;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps, "look every n-th step whether loss, gradients and parameters are finite; 0: never",
      config::at_least(0));
  }
};

/// See Profiler. Steps are numbered as in metrics.jsonl: the first one is 1.
struct ProfileConfig {
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool operators = true;

  template <class V>
  void visit(V& v) {
    v("from", from, "first step of which a trace is written to trace.json; 0: of none", config::at_least(0));
    v("to", to, "last one", config::at_least(0));
    v("operators", operators, "with every operator of LibTorch in it");
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
  ProfileConfig profile;

  template <class V>
  void visit(V& v) {
    v("every_steps", every_steps, "a training line in metrics.jsonl after every n-th step", config::at_least(1));
    v("meters", meters, "what is measured while training; empty: what the task does");
    v("progress", progress, "show progress on standard output");
    v("report", report, "write report.html at the end");
    v("tensorboard", tensorboard, "write what is measured to event files of TensorBoard too");
    v("prometheus", prometheus, "metrics over HTTP");
    v("nan_guard", nan_guard, "whether numbers are still numbers");
    v("profile", profile, "the window of steps that is traced");
  }
};

}  // namespace phalanx
