// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/step.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "tools/simulate/network.h"

namespace phalanx::simulate {
namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

ScenarioMesh complete(const Scenario& scenario) {
  ScenarioMesh mesh = scenario.mesh;
  const auto ranks = scenario.ranks();
  const auto others = mesh.pipe * mesh.tensor * mesh.expert * mesh.context;
  if (mesh.data == 0 && ranks % others == 0) mesh.data = ranks / others;
  if (mesh.ranks() != ranks) {
    throw ConfigError("mesh: the product of its axes is " + text(std::max<std::int64_t>(mesh.data, 1) * others) +
                      ", but cluster.hosts times cluster.ranks_per_host is " + text(ranks) +
                      "; set mesh.data: 0, and other axes whose product divides the number of ranks");
  }
  return mesh;
}

void check(const Scenario& scenario, const ScenarioMesh& mesh) {
  const auto& model = scenario.model;
  if (model.width == 0 && mesh.ranks() != mesh.data) {
    throw ConfigError(
        "model.width: is 0, so only mesh.data can be above 1; set it to the number of features of a token");
  }
  if (model.layers % mesh.pipe != 0) {
    throw ConfigError("mesh.pipe: " + text(mesh.pipe) + " stages do not divide model.layers: " + text(model.layers));
  }
  if (model.width % mesh.tensor != 0) {
    throw ConfigError("mesh.tensor: " + text(mesh.tensor) + " does not divide model.width: " + text(model.width));
  }
  if (model.sequence % mesh.context != 0) {
    throw ConfigError("mesh.context: " + text(mesh.context) +
                      " does not divide model.sequence: " + text(model.sequence));
  }
  if (mesh.expert > 1 && model.expert_parameters == 0) {
    throw ConfigError("mesh.expert: must be 1, since model.expert_parameters is 0");
  }
}

double flops_per_sample(const ModelConfig& model) {
  if (model.flops_per_sample > 0) return model.flops_per_sample;
  const auto tokens = static_cast<double>(model.sequence);
  return 6 * model.parameters * tokens + 12 * static_cast<double>(model.layers * model.width) * tokens * tokens;
}

double activation_bytes(const ModelConfig& model, bool recompute) {
  if (model.activation_bytes > 0) return model.activation_bytes;
  return (recompute ? 2.0 : 34.0) * static_cast<double>(model.layers * model.width * model.sequence);
}

/// A scenario with the quantities that follow from it.
class Prediction {
 public:
  explicit Prediction(const Scenario& scenario)
      : scenario_(scenario), mesh_(complete(scenario)), network_(scenario.cluster) {
    check(scenario_, mesh_);
    replicas_ = mesh_.data * mesh_.expert;
    const auto& train = scenario_.train;
    samples_ = train.global_batch_size > 0 ? train.global_batch_size : train.samples_per_replica * replicas_;
    if (samples_ % replicas_ != 0) {
      throw ConfigError("train.global_batch_size: " + text(samples_) + " samples cannot be divided among " +
                        text(replicas_) + " replicas");
    }
    own_samples_ = samples_ / replicas_;
    micro_ = train.micro_batch_size > 0 ? train.micro_batch_size : own_samples_;
    if (own_samples_ % micro_ != 0) {
      throw ConfigError("train.micro_batch_size: " + text(micro_) + " does not divide the " + text(own_samples_) +
                        " samples of a replica");
    }
    micro_batches_ = own_samples_ / micro_;
  }

  Step step() const {
    Step step{.mesh = mesh_, .samples = static_cast<double>(samples_)};
    const auto batches = static_cast<double>(micro_batches_);
    const double compute = micro_compute(), layers = micro_layers();
    step.compute = batches * compute;
    step.layers = batches * layers;
    step.bubble = static_cast<double>(mesh_.pipe - 1) * (compute + layers);
    step.gradients = exposed_gradients(step.compute, compute);
    step.seconds = step.compute + step.layers + step.bubble + step.gradients;
    step.memory = memory();
    step.fits = step.memory <= scenario_.cluster.memory;
    return step;
  }

 private:
  double micro_compute() const {
    const auto& cluster = scenario_.cluster;
    const auto& model = scenario_.model;
    const auto ranks = static_cast<double>(cluster.ranks_per_host);
    const double sharing = cluster.cores_per_host > 0 ? std::max(1.0, ranks / cluster.cores_per_host) : 1;
    const double one = model.seconds_per_sample > 0 ? model.seconds_per_sample
                                                    : flops_per_sample(model) / (cluster.flops * cluster.efficiency);
    const double again = scenario_.train.recompute ? 4.0 / 3 : 1;
    return static_cast<double>(micro_) * one * again * sharing / static_cast<double>(mesh_.model() * mesh_.context);
  }

  Group along_context() const { return {mesh_.context, 1}; }
  Group along_expert() const { return {mesh_.expert, mesh_.context}; }
  Group along_tensor() const { return {mesh_.tensor, mesh_.context * mesh_.expert}; }
  Group along_pipe() const { return {mesh_.pipe, mesh_.context * mesh_.expert * mesh_.tensor}; }
  Group along_data() const { return {mesh_.data, mesh_.context * mesh_.expert * mesh_.model()}; }
  // Returns the ranks that have the same parameters, experts excluded. The distance between them is not always the
  // same; inside a host, the smallest distance is used.
  Group along_replicas() const {
    const auto near = mesh_.expert * mesh_.context;
    if (near == 1) return along_data();
    return {mesh_.data * near, mesh_.data == 1 ? 1 : mesh_.model()};
  }

  double micro_layers() const {
    const auto& model = scenario_.model;
    const double activations =
        static_cast<double>(micro_ * model.sequence / mesh_.context * model.width) * model.activation_element;
    const auto layers = static_cast<double>(model.layers / mesh_.pipe);
    const double sums = scenario_.train.recompute ? 6 : 4;
    double seconds = layers * sums * network_.all_reduce(along_tensor(), activations, scenario_.train.algorithm);
    if (model.expert_parameters > 0) {
      seconds +=
          layers * 4 * network_.all_to_all(along_expert(), activations * static_cast<double>(model.experts_per_token));
    }
    seconds += layers * 2 * 2 *
               network_.half(along_context(),
                             activations * static_cast<double>(mesh_.context) / static_cast<double>(mesh_.tensor));
    return seconds + 2 * network_.send(along_pipe(), activations / static_cast<double>(mesh_.tensor));
  }

  double own(double parameters) const { return parameters / static_cast<double>(mesh_.model()); }

  // Returns the seconds to exchange gradients, and with ZeRO to gather parameters.
  double exchange(const Group& group, double parameters) const {
    const double value = scenario_.model.parameter_element, gradient = scenario_.model.gradient_element;
    const auto zero = scenario_.train.zero;
    if (zero == 0) return network_.all_reduce(group, parameters * gradient, scenario_.train.algorithm);
    const double gathers = zero == 3 ? 2 : 1;
    return network_.half(group, parameters * gradient) + gathers * network_.half(group, parameters * value);
  }

  double exposed_gradients(double all_compute, double last_compute) const {
    const auto& train = scenario_.train;
    const double dense = own(scenario_.model.parameters);
    const double experts = own(scenario_.model.expert_parameters) / static_cast<double>(mesh_.expert);
    const double seconds = exchange(along_replicas(), dense) + exchange(along_data(), experts);
    if (!train.overlap || seconds == 0) return seconds;
    const double buckets = std::max(1.0, (dense + experts) * scenario_.model.gradient_element / train.bucket_bytes);
    const double hidden_by = train.zero == 3 ? all_compute : last_compute * 2 / 3;
    return std::max(seconds / buckets, seconds - hidden_by);
  }

  // With 1F1B, the first stage has as many micro-batches in flight as there are stages.
  double memory() const {
    const auto& model = scenario_.model;
    const auto zero = scenario_.train.zero;
    const auto share = [&](std::int64_t stage, std::int64_t ranks) {
      return zero >= stage ? 1.0 / static_cast<double>(ranks) : 1.0;
    };
    const auto of = [&](double parameters, std::int64_t replicas) {
      return parameters * (model.parameter_element * share(3, replicas) + model.gradient_element * share(2, replicas) +
                           model.optimizer_bytes * share(1, replicas));
    };
    const double experts = own(model.expert_parameters) / static_cast<double>(mesh_.expert);
    const double under_way = static_cast<double>(std::min(mesh_.pipe, micro_batches_) * micro_);
    return of(own(model.parameters), mesh_.data * mesh_.expert * mesh_.context) + of(experts, mesh_.data) +
           under_way * activation_bytes(model, scenario_.train.recompute) /
               static_cast<double>(mesh_.model() * mesh_.context);
  }

  Scenario scenario_;
  ScenarioMesh mesh_;
  Network network_;
  std::int64_t replicas_, samples_, own_samples_, micro_, micro_batches_;
};

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= number; ++i) {
    if (number % i == 0) all.push_back(i);
  }
  return all;
}

}  // namespace

Step simulate(const Scenario& scenario) { return Prediction(scenario).step(); }

double scaling_efficiency(const Scenario& scenario) {
  const Step step = simulate(scenario);
  Scenario one = scenario;
  one.cluster.hosts = one.cluster.ranks_per_host = 1;
  one.mesh = {};
  one.train.global_batch_size = 0;
  one.train.samples_per_replica =
      std::max<std::int64_t>(1, std::llround(step.samples) / (step.mesh.data * step.mesh.expert));
  const double alone = simulate(one).samples_per_second();
  return step.samples_per_second() / (alone * static_cast<double>(scenario.ranks()));
}

std::vector<Step> search(const Scenario& scenario) {
  std::vector<Step> fitting;
  double least = 0;
  const auto ranks = scenario.ranks();
  for (const auto tensor : divisors(ranks)) {
    for (const auto pipe : divisors(ranks / tensor)) {
      for (const auto expert : divisors(ranks / tensor / pipe)) {
        for (const auto context : divisors(ranks / tensor / pipe / expert)) {
          Scenario one = scenario;
          one.mesh = {.data = 0, .pipe = pipe, .tensor = tensor, .expert = expert, .context = context};
          Step step;
          try {
            step = simulate(one);
          } catch (const ConfigError&) {
            continue;  // not a valid mesh for this model and batch
          }
          if (step.fits) fitting.push_back(step);
          least = least == 0 ? step.memory : std::min(least, step.memory);
        }
      }
    }
  }
  if (fitting.empty()) {
    throw ConfigError("cluster.memory: no mesh of " + text(ranks) + " ranks fits into " +
                      format_bytes(std::llround(scenario.cluster.memory)) + "; the smallest takes " +
                      format_bytes(std::llround(least)));
  }
  std::ranges::stable_sort(fitting, std::greater<>(), &Step::samples_per_second);
  return fitting;
}

std::vector<ScalingPoint> scaling(Scenario scenario) {
  const auto most = scenario.cluster.hosts;
  scenario.mesh.data = 0;
  scenario.train.global_batch_size = 0;
  std::vector<ScalingPoint> points;
  double per_rank = 0;
  for (std::int64_t hosts = 1; hosts <= most; hosts *= 2) {
    scenario.cluster.hosts = hosts;
    const auto ranks = scenario.ranks();
    if (ranks % (scenario.mesh.model() * scenario.mesh.expert * scenario.mesh.context) != 0) continue;
    const double rate = simulate(scenario).samples_per_second();
    if (points.empty()) per_rank = rate / static_cast<double>(ranks);
    points.push_back({ranks, rate, per_rank * static_cast<double>(ranks)});
  }
  return points;
}

}  // namespace phalanx::simulate
