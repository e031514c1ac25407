// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/registry.h"

namespace phalanx::config::testing {

// A schema with a field of every type, for the tests of this package.

struct Lenet {
  std::int64_t channels = 6;
  template <class V>
  void visit(V& v) {
    v("channels", channels, "of the first layer", at_least(1));
  }
};

struct Mlp {
  std::int64_t hidden = 128;
  double dropout = 0;
  template <class V>
  void visit(V& v) {
    v("hidden", hidden, "width of the hidden layer", at_least(1));
    v("dropout", dropout, "share of activations dropped", between(0, 1));
  }
};

struct Stack {
  static constexpr const char* kImplyingKey = "layers";
  std::int64_t layers = 2;
  template <class V>
  void visit(V& v) {
    v("layers", layers, "how many");
  }
};

using Models = Registry<std::string()>;
inline const bool models_registered = Models::global().add<Lenet>("lenet", "LeNet-5", [](const Lenet& c) {
  return "lenet " + std::to_string(c.channels);
}) && Models::global().add<Mlp>("mlp", "multi-layer perceptron", [](const Mlp& c) {
  return "mlp " + std::to_string(c.hidden);
}) && Models::global().add<Stack>("stack", "layers on layers", [](const Stack& c) {
  return "stack " + std::to_string(c.layers);
});

struct Optimizer {
  double lr = 0.1;
  double momentum = 0.9;
  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", above(0));
    v("momentum", momentum, "share of the last step", between(0, 1));
  }
};

struct Stage {
  double lr = 0.1;
  std::int64_t steps = 10;
  std::string shape = "flat";
  template <class V>
  void visit(V& v) {
    v("lr", lr, "learning rate", above(0));
    v("steps", steps, "how long", at_least(1));
    v("shape", shape, "of the rate", one_of({"flat", "linear"}));
  }
};

struct Stages {
  std::vector<Stage> stages;
  std::int64_t seed = 1;
  template <class V>
  void visit(V& v) {
    v("stages", stages, "one after the other");
    v("seed", seed, "of all randomness");
  }
};

struct Launch {
  std::int64_t ranks = 1;
  std::string with = "auto";
  template <class V>
  void visit(V& v) {
    v("ranks", ranks, "number of processes", at_least(1));
    v("with", with, "who starts them", one_of({"auto", "local", "mpi"}));
  }
};

struct Root {
  std::string name = "run";
  bool amp = false;
  std::int64_t seed = 1;
  std::vector<std::int64_t> sizes = {1, 2};
  std::vector<double> rates;
  std::vector<std::string> tags;
  Launch launch;
  Optimizer optimizer;
  Models::Choice model{"lenet"};

  template <class V>
  void visit(V& v) {
    v("name", name, "of the run");
    v("amp", amp, "mixed precision");
    v("seed", seed, "of all randomness");
    v("sizes", sizes, "of the layers", between(1, 100));
    v("rates", rates, "of the schedule", at_least(0));
    v("tags", tags, "to find the run by");
    v("launch", launch, "how ranks are started");
    v("optimizer", optimizer, "what moves the parameters");
    v("model", model, "the network to train");
  }
};

/// Returns the report of all problems with the text and the overrides, or an empty string if they have none.
template <class Config = Root>
std::string problems_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Config config;
  try {
    load_text(config, text, "t.yaml", overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

template <class Config = Root>
Config loaded(const std::string& text, const std::vector<std::string>& overrides = {}) {
  Config config;
  load_text(config, text, "t.yaml", overrides);
  return config;
}

}  // namespace phalanx::config::testing
