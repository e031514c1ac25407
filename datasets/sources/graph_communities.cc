// SPDX-License-Identifier: Apache-2.0
// Generated graphs of communities (Holland, Laskey, Leinhardt 1983, Stochastic Blockmodels: First Steps). The task is
// to find the community of each node.
//
//   features [n, nodes, classes] float: 1 for the node's community, 0 for others, plus normal noise on all values
//   adjacency [n, nodes, nodes] float: 1 for an edge, symmetric, without loops
//   target [n, nodes] int64: the community of each node
//
// Two nodes have an edge with probability `inside` if they are in the same community, and `between` otherwise. With the
// noise, a node's own features often suggest the wrong community; the features of its neighbours help. Graphs have from
// `least_nodes` to `nodes` nodes. They are padded to `nodes` with nodes that have no features, no edges and ignored
// targets.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "datasets/batch_memory.h"
#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

struct GraphConfig {
  std::int64_t train_samples = 2000;
  std::int64_t test_samples = 400;
  std::int64_t classes = 4;
  std::int64_t nodes = 48;
  std::int64_t least_nodes = 32;
  double inside = 0.5;
  double between = 0.05;
  double noise = 0.8;
  std::int64_t seed = 1;
  std::string root;

  template <class V>
  void visit(V& v) {
    v("train_samples", train_samples, "graphs to train on", config::at_least(1));
    v("test_samples", test_samples, "graphs to test on", config::at_least(1));
    v("classes", classes, "communities of a graph, which are the classes of its nodes", config::between(2, 1000));
    v("nodes", nodes, "largest number of nodes of a graph; smaller graphs are padded", config::between(1, 4096));
    v("least_nodes", least_nodes, "smallest number of nodes of a graph", config::between(1, 4096));
    v("inside", inside, "probability of an edge within a community", config::between(0, 1));
    v("between", between, "probability of an edge between communities", config::between(0, 1));
    v("noise", noise, "standard deviation of the noise on the features", config::at_least(0));
    v("seed", seed, "random seed of the graphs");
    v("root", root, "unused, since there are no files");
  }
};

class GraphCommunities final : public Dataset {
 public:
  // `split` separates the training graphs from the test graphs.
  GraphCommunities(const GraphConfig& config, std::int64_t samples, std::uint64_t split)
      : config_(config), samples_(samples), seed_(mix(static_cast<std::uint64_t>(config.seed), split)) {}

  std::int64_t size() const override { return samples_; }
  const SampleSpec& spec() const override { return spec_; }

  void gather(std::span<const std::int64_t> indices, std::uint64_t, Batch& batch) const override {
    const auto rows = std::ssize(indices), nodes = config_.nodes, classes = config_.classes;
    auto* features = ensure(batch.inputs, 0, std::array{rows, nodes, classes}, at::kFloat).data_ptr<float>();
    auto* adjacency = ensure(batch.inputs, 1, std::array{rows, nodes, nodes}, at::kFloat).data_ptr<float>();
    auto* target = ensure(batch.targets, 0, std::array{rows, nodes}, at::kLong).data_ptr<std::int64_t>();
    std::fill_n(features, rows * nodes * classes, 0.0F);
    std::fill_n(adjacency, rows * nodes * nodes, 0.0F);
    std::fill_n(target, rows * nodes, kIgnored);
    for (const auto index : indices) {
      TORCH_CHECK_INDEX(index >= 0 && index < size(), "sample ", index, " is out of range; the size is ", size());
      RandomStream random(mix(seed_, static_cast<std::uint64_t>(index)));
      const auto drawn = random.below(static_cast<std::uint64_t>(nodes - config_.least_nodes + 1));
      const auto count = config_.least_nodes + static_cast<std::int64_t>(drawn);
      for (std::int64_t i = 0; i < count; ++i) {
        target[i] = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(classes)));
        for (std::int64_t j = 0; j < i; ++j) {
          const double probability = target[i] == target[j] ? config_.inside : config_.between;
          if (random.uniform() > probability) continue;
          adjacency[i * nodes + j] = adjacency[j * nodes + i] = 1;
        }
        for (std::int64_t c = 0; c < classes; ++c) {
          const double noise = config_.noise * random.normal();
          features[i * classes + c] = static_cast<float>(noise + (c == target[i] ? 1 : 0));
        }
      }
      features += nodes * classes;
      adjacency += nodes * nodes;
      target += nodes;
    }
  }

 private:
  GraphConfig config_;
  SampleSpec spec_{.inputs = {{.name = "features", .shape = {config_.nodes, config_.classes}},
                              {.name = "adjacency", .shape = {config_.nodes, config_.nodes}}},
                   .targets = {{.name = "communities",
                                .shape = {config_.nodes},
                                .dtype = at::kLong,
                                .classes = config_.classes,
                                .ignored = config_.least_nodes < config_.nodes}},
                   .task = "classification"};
  std::int64_t samples_;
  std::uint64_t seed_;
};

Splits make_graphs(const GraphConfig& config) {
  if (config.least_nodes > config.nodes) {
    throw ConfigError("dataset.least_nodes: " + std::to_string(config.least_nodes) +
                      " is more than dataset.nodes: " + std::to_string(config.nodes) + "; use fewer");
  }
  return {.train = std::make_shared<GraphCommunities>(config, config.train_samples, 0),
          .test = std::make_shared<GraphCommunities>(config, config.test_samples, 1)};
}

const bool graph_communities_registered = Datasets::global().add<GraphConfig>(
    "graph_communities", "graphs whose nodes belong to communities, needs no files", make_graphs);

}  // namespace
}  // namespace phalanx
