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
#include <algorithm>
#include <cstdint>
#include <string>

#include "datasets/generated.h"
#include "datasets/random_stream.h"
#include "datasets/without_files.h"
#include "framework/base/config/visitor.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct GraphConfig : GeneratedConfig {
  GraphConfig() : GeneratedConfig{.train_samples = 2000, .test_samples = 400} {}

  std::int64_t classes = 4;
  std::int64_t nodes = 48;
  std::int64_t least_nodes = 32;
  double inside = 0.5;
  double between = 0.05;
  double noise = 0.8;

  template <class V>
  void visit(V& v) {
    visit_sizes(v);
    v("classes", classes, "communities of a graph, which are the classes of its nodes", config::between(2, 1000));
    v("nodes", nodes, "largest number of nodes of a graph; smaller graphs are padded", config::between(1, 4096));
    v("least_nodes", least_nodes, "smallest number of nodes of a graph", config::between(1, 4096));
    v("inside", inside, "probability of an edge within a community", config::between(0, 1));
    v("between", between, "probability of an edge between communities", config::between(0, 1));
    v("noise", noise, "standard deviation of the noise on the features", config::at_least(0));
    visit_seed(v);
  }
};

SampleSpec spec_of(const GraphConfig& config) {
  return {.inputs = {{.name = "features", .shape = {config.nodes, config.classes}},
                     {.name = "adjacency", .shape = {config.nodes, config.nodes}}},
          .targets = {{.name = "communities",
                       .shape = {config.nodes},
                       .dtype = at::kLong,
                       .classes = config.classes,
                       .ignored = config.least_nodes < config.nodes}},
          .task = "classification"};
}

class GraphCommunities final : public GeneratedDataset {
 public:
  GraphCommunities(const GraphConfig& config, Split split)
      : GeneratedDataset(spec_of(config), split), config_(config) {}

 private:
  void write(std::int64_t index, const Row& row) const override {
    const auto nodes = config_.nodes, classes = config_.classes;
    auto* features = row.input<float>(0);
    auto* adjacency = row.input<float>(1);
    auto* target = row.target<std::int64_t>();
    std::fill_n(features, nodes * classes, 0.0F);
    std::fill_n(adjacency, nodes * nodes, 0.0F);
    std::fill_n(target, nodes, kIgnored);
    RandomStream random(seed_of(index));
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
  }

  GraphConfig config_;
};

Splits make_graphs(const GraphConfig& config) {
  if (config.least_nodes > config.nodes) {
    throw ConfigError("dataset.least_nodes: " + std::to_string(config.least_nodes) +
                      " is more than dataset.nodes: " + std::to_string(config.nodes) + "; use fewer");
  }
  return generated_splits<GraphCommunities>(config);
}

const bool graph_communities_registered = add_dataset_without_files<GraphConfig>(
    "graph_communities", "graphs whose nodes belong to communities, needs no files", make_graphs);

}  // namespace
}  // namespace phalanx
