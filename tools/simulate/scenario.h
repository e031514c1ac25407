// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/config/visitor.h"

namespace phalanx::simulate {

/// Identical hosts, connected by a switch.
struct ClusterConfig {
  std::int64_t hosts = 1;
  std::int64_t ranks_per_host = 1;
  double cores_per_host = 0;
  double flops = 1e12;
  double efficiency = 0.5;
  double memory = 16e9;
  double host_bandwidth = 10e9;
  double host_latency = 5e-6;
  double nic_bandwidth = 1.25e9;
  double nic_latency = 20e-6;
  double network_efficiency = 1;
  double oversubscription = 1;

  template <class V>
  void visit(V& v) {
    v("hosts", hosts, "number of hosts", config::between(1, 1'000'000));
    v("ranks_per_host", ranks_per_host, "ranks (GPUs) of each host", config::between(1, 1024));
    v("cores_per_host", cores_per_host, "cores that its ranks compute on, if they share them; 0: each has its own",
      config::at_least(0));
    v("flops", flops, "peak of a rank, in FLOP/s", config::above(0));
    v("efficiency", efficiency, "share of flops that a model reaches", config::above(0));
    v("memory", memory, "memory of a rank in bytes", config::above(0));
    v("host_bandwidth", host_bandwidth, "bytes per second that a rank sends inside its host", config::above(0));
    v("host_latency", host_latency, "seconds of a message inside a host", config::at_least(0));
    v("nic_bandwidth", nic_bandwidth, "bytes per second that a host sends to others", config::above(0));
    v("nic_latency", nic_latency, "seconds of a message to another host", config::at_least(0));
    v("network_efficiency", network_efficiency, "share of the bandwidths that collectives reach", config::above(0));
    v("oversubscription", oversubscription, "of the switch: nic_bandwidth is divided by this if all hosts send",
      config::at_least(1));
  }
};

struct ModelConfig {
  std::string name = "model";
  double parameters = 1e6;
  double expert_parameters = 0;
  double flops_per_sample = 0;
  double seconds_per_sample = 0;
  std::int64_t layers = 1;
  std::int64_t width = 0;
  std::int64_t sequence = 1;
  double activation_bytes = 0;
  double activation_element = 2;
  double parameter_element = 4;
  double gradient_element = 4;
  double optimizer_bytes = 8;
  std::int64_t experts_per_token = 1;

  template <class V>
  void visit(V& v) {
    v("name", name, "name of the model");
    v("parameters", parameters, "parameters, without those of experts", config::above(0));
    v("expert_parameters", expert_parameters, "parameters of all experts", config::at_least(0));
    v("flops_per_sample", flops_per_sample,
      "FLOPs of forward and backward; 0: 6 parameters sequence + 12 layers width sequence^2", config::at_least(0));
    v("seconds_per_sample", seconds_per_sample, "time of a sample on one rank with a core of its own, instead of FLOPs",
      config::at_least(0));
    v("layers", layers, "number of blocks", config::at_least(1));
    v("width", width, "features of a token; 0: no token, so no tensor, pipe, expert or context axis",
      config::at_least(0));
    v("sequence", sequence, "tokens of a sample", config::at_least(1));
    v("activation_bytes", activation_bytes,
      "of a sample, kept for backward; 0: 34 layers width sequence, or 2 with train.recompute", config::at_least(0));
    v("activation_element", activation_element, "bytes of an element that layers exchange", config::above(0));
    v("parameter_element", parameter_element, "bytes of a parameter, as it is kept and gathered", config::above(0));
    v("gradient_element", gradient_element, "bytes of an element of a gradient", config::above(0));
    v("optimizer_bytes", optimizer_bytes, "bytes of optimizer state for each parameter", config::at_least(0));
    v("experts_per_token", experts_per_token, "experts that a token goes to", config::at_least(1));
  }
};

/// The mesh, as in the config of a run. Neighbors differ along context first, then expert, tensor, pipe and data.
struct ScenarioMesh {
  std::int64_t data = 0, pipe = 1, tensor = 1, expert = 1, context = 1;

  std::int64_t model() const { return pipe * tensor; }
  std::int64_t ranks() const { return data * pipe * tensor * expert * context; }

  template <class V>
  void visit(V& v) {
    v("data", data, "ranks that have samples of their own; 0: all that the other axes leave", config::at_least(0));
    v("pipe", pipe, "stages of layers", config::at_least(1));
    v("tensor", tensor, "ranks that divide each layer", config::at_least(1));
    v("expert", expert, "ranks that have samples of their own and divide the experts", config::at_least(1));
    v("context", context, "ranks that divide each sample's tokens", config::at_least(1));
  }
};

struct ScenarioTraining {
  std::int64_t global_batch_size = 0;
  std::int64_t samples_per_replica = 1;
  std::int64_t micro_batch_size = 0;
  std::int64_t zero = 0;
  bool overlap = true;
  bool recompute = false;
  double bucket_bytes = 25e6;
  std::string algorithm = "best";

  template <class V>
  void visit(V& v) {
    v("global_batch_size", global_batch_size, "samples of a step; 0: samples_per_replica of each replica",
      config::at_least(0));
    v("samples_per_replica", samples_per_replica, "samples of a step of each replica", config::at_least(1));
    v("micro_batch_size", micro_batch_size, "samples that a replica takes at once; 0: all", config::at_least(0));
    v("zero", zero, "ZeRO stage; what replicas divide: 1: optimizer state, 2: gradients too, 3: parameters too",
      config::between(0, 3));
    v("overlap", overlap, "communicate gradients during backward");
    v("recompute", recompute, "compute activations again in backward");
    v("bucket_bytes", bucket_bytes, "size of gradient buckets", config::above(0));
    v("algorithm", algorithm, "algorithm of all_reduce", config::one_of({"best", "ring", "tree", "hierarchical"}));
  }
};

/// A scenario to simulate: a file for tools:simulate.
struct Scenario {
  ClusterConfig cluster;
  ModelConfig model;
  ScenarioMesh mesh;
  ScenarioTraining train;

  std::int64_t ranks() const { return cluster.hosts * cluster.ranks_per_host; }

  template <class V>
  void visit(V& v) {
    v("cluster", cluster, "hosts and links");
    v("model", model, "model");
    v("mesh", mesh, "arrangement of ranks");
    v("train", train, "how a step is computed");
  }
};

}  // namespace phalanx::simulate
