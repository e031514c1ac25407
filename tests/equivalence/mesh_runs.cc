// SPDX-License-Identifier: Apache-2.0
#include "tests/equivalence/mesh_runs.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <mutex>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/safetensors.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/zoo/scripted.h"

namespace phalanx::testing {
namespace {

// Writes a text of 10 letters whose order has a pattern, so that there is something to learn. Ranks are threads or
// processes, and none may read a file that another has only begun to write.
std::string text_file() {
  static std::once_flag written;
  const std::string path = ::testing::TempDir() + "/letters.txt";
  std::call_once(written, [&] {
    std::string letters;
    for (int i = 0; i < 3000; ++i) letters += static_cast<char>('a' + (i * i / 7 + i / 3) % 10);
    write_atomically(path, letters);
  });
  return path;
}

constexpr const char* kImages =
    "dataset={name: random_images, train_samples: 60, test_samples: 20, channels: 1, side: 8, classes: 5}";

// Writes a TorchScript model. Ranks are threads or processes: each process writes its own file, with the same values.
std::string scripted_file() {
  static std::once_flag written;
  const std::string path = ::testing::TempDir() + "/mlp" + std::to_string(::getpid()) + ".pt";
  std::call_once(written, [&] {
    at::manual_seed(3);
    save_scripted_mlp(path, {64, 24, 12, 5});
  });
  return path;
}

// Returns the model and the dataset of a kind.
Changes sections_of(const std::string& kind) {
  const std::string text = "{name: text, file: " + text_file() + ", context: 16}";
  if (kind == "gpt") return {"model={name: gpt, layers: 2, heads: 4, width: 16}", "dataset=" + text};
  if (kind == "moe") return {"model={name: moe_gpt, layers: 2, heads: 4, width: 16, experts: 4}", "dataset=" + text};
  if (kind == "llama") {
    return {"model={name: llama, layers: 2, heads: 4, key_value_heads: 2, width: 16}", "dataset=" + text};
  }
  if (kind == "bert") {
    return {"model={name: bert, layers: 2, heads: 4, width: 16}", "dataset={name: masked_tokens, of: " + text + "}"};
  }
  if (kind == "lstm") return {"model={name: lstm, layers: 2, width: 12}", "dataset=" + text};
  if (kind == "transformer") {
    return {"model={name: transformer, layers: 2, heads: 4, width: 16, padding: 9}",
            "dataset={name: reversal, symbols: 8, length: 6, shortest: 3, train_samples: 300, test_samples: 40}"};
  }
  if (kind == "vit" || kind == "vit_b_16") {
    return {"model={name: " + kind + ", patch: 4, layers: 2, heads: 2, width: 16, hidden: 32}",
            "dataset={name: digits, train_samples: 300, test_samples: 40, side: 16}"};
  }
  if (kind == "vae" || kind == "dcgan") {
    const bool vae = kind == "vae";
    return {vae ? "model={name: vae, hidden: [24]}" : "model={name: dcgan, width: 4}",
            vae ? "task={name: variational, likelihood: gaussian}" : "task=adversarial",
            "train.sync_batch_norm=" + std::string(vae ? "false" : "true"),
            "dataset={name: with_noise, size: 5, of: {name: digits, train_samples: 300, test_samples: 40, side: 16}}"};
  }
  if (kind == "siamese") {
    return {"model={name: siamese, channels: [4], hidden: [24]}",
            "dataset={name: pairs, of: {name: digits, train_samples: 300, test_samples: 40, side: 16}}"};
  }
  if (kind == "exported") return {"model={name: exported, file: tests/zoo/exported/mlp.pt2}", kImages};
  if (kind == "torchscript") return {"model={name: torchscript, trust: true, file: " + scripted_file() + "}", kImages};
  if (kind == "lenet") return {"model=lenet", "dataset={name: digits, train_samples: 60, test_samples: 20, side: 28}"};
  if (kind == "vgg11" || kind == "vgg11_bn") {
    return {"model={name: " + kind + ", width: 4, hidden: 15, dropout: 0}",
            "dataset={name: digits, train_samples: 60, test_samples: 20, side: 32}"};
  }
  return {"model={name: mlp, hidden: [24, 12]}",
          "dataset={name: digits, train_samples: 300, test_samples: 40, side: 16}"};
}

// Returns the settings for 20 steps of a small model of each kind. They use Adam, so that the gradients of all elements
// have the same weight.
Changes model_of(const std::string& kind) {
  Changes changes{"optimizer={name: adamw, lr: 0.003}", "train.max_steps=20", "train.global_batch_size=12",
                  "schedule=constant"};
  for (auto& section : sections_of(kind)) changes.push_back(std::move(section));
  return changes;
}

void expect_same_metrics(const Metrics& got, const Metrics& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i].second, expected[i].second, 1e-4) << got[i].first;
}

// Trains on the first ranks only, while the others wait.
Trained train_on(int ranks, const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run) {
  const bool first = world->rank() < ranks;
  const auto alone = world->split(first ? 0 : 1, world->rank());
  Trained trained;
  if (first) trained = train(config, alone, run);
  world->barrier().wait();
  return trained;
}

Changes concat(Changes some, const Changes& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

struct Runs {
  std::string kind, name;
  Changes sharded, plain;
};

// Trains on `ranks` ranks, and on the first `others` of them.
void expect_same(const Runs& runs, int ranks, int others, double tolerance) {
  const auto& [kind, name, sharded, plain] = runs;
  run_ranks(kBackend, ranks, [&](const CommunicatorPtr& world) {
    const auto run = file_name(kind + std::to_string(ranks) + name);
    const Trained trained = train(config_of(kind, sharded), world, run);
    const Trained expected = train_on(others, config_of(kind, plain), world, run + "_plain");
    if (world->rank() != 0) return;
    EXPECT_LT(relative_difference(trained.folder, expected.folder), tolerance) << kind << ' ' << name;
    expect_same_metrics(trained.test, expected.test);
  });
}

}  // namespace

ExperimentConfig config_of(const std::string& kind, const Changes& more) {
  auto changes = model_of(kind);
  changes.push_back("train.precision=fp64");
  changes.insert(changes.end(), more.begin(), more.end());
  return testing::training_config(changes);
}

double relative_difference(const std::string& folder, const std::string& expected) {
  double difference = 0, norm = 0;
  const auto got = load_safetensors(folder + "/weights.safetensors"),
             want = load_safetensors(expected + "/weights.safetensors");
  EXPECT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].first, want[i].first);
    EXPECT_EQ(got[i].second.sizes(), want[i].second.sizes()) << want[i].first;
    difference += (got[i].second - want[i].second).square().sum().item<double>();
    norm += want[i].second.square().sum().item<double>();
  }
  return std::sqrt(difference / norm);
}

void expect_equals_one_rank(const std::string& kind, int ranks, const Changes& mesh, const Changes& both,
                            double tolerance) {
  const auto name = mesh[0] + mesh.back() + both[0];
  expect_same({kind, name, concat(both, mesh), concat(both, {"strategy=single"})}, ranks, 1, tolerance);
}

void expect_same(const std::string& kind, int ranks, const Changes& sharded, int others, const Changes& plain) {
  expect_same({kind, sharded[0] + sharded.back(), sharded, plain}, ranks, others, kRounding);
}

void expect_resumed_equals_one_rank(const std::string& kind, const std::string& name, const std::vector<RunPart>& legs,
                                    const Changes& alone) {
  const auto run = file_name(kind + "_journey_" + name);
  int steps = 0;
  const auto with_steps = [&](const Changes& changes) {
    return concat(changes, {"train.max_steps=" + std::to_string(steps), "checkpoint.every_steps=5"});
  };
  for (const auto& [ranks, changes] : legs) {
    const std::string resume = steps > 0 ? "auto" : "none";
    steps += 5;
    const auto config = config_of(kind, concat(with_steps(changes), {"checkpoint.resume=" + resume}));
    run_ranks(kBackend, ranks, [&](const CommunicatorPtr& world) { train(config, world, run); });
  }
  run_ranks(kBackend, 1, [&](const CommunicatorPtr& world) {
    const auto expected = train(config_of(kind, with_steps(alone)), world, run + "_alone");
    EXPECT_LT(relative_difference(::testing::TempDir() + "/" + run, expected.folder), kRounding) << kind << " " << name;
  });
}

void expect_refused(int ranks, const std::string& kind, const Changes& changes, const char* part) {
  run_ranks(kBackend, ranks, [&](const CommunicatorPtr& world) {
    std::string text = "nothing was refused";
    try {
      train(config_of(kind, changes), world, file_name(kind + changes.back()));
    } catch (const ConfigError& error) {
      text = error.what();
    }
    EXPECT_NE(text.find(part), std::string::npos) << text;
  });
}

}  // namespace phalanx::testing
