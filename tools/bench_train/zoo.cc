// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "models/model.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {
namespace {

struct Small {
  std::string begin;   // prefix of model names
  std::string fields;  // fields of the model's section
  SampleSpec sample;
};

const std::vector<TensorSpec> kNoisyImage{{.name = "image", .shape = {1, 28, 28}}, {.name = "noise", .shape = {16}}};

const SampleSpec kDigits = classification_samples({1, 28, 28}, 10), kText = language_samples(32, 65);

// Returns the fields and samples by prefix. If a name begins with several of the prefixes, the first one applies.
const std::vector<Small>& small_models() {
  static const SampleSpec large = classification_samples({3, 64, 64}, 10);
  static const SampleSpec clicks{
      .inputs = {{.name = "dense", .shape = {4}}, {.name = "ids", .shape = {8}, .dtype = at::kLong, .classes = 1000}},
      .targets = {{.name = "click"}},
      .task = "binary_classification"};
  static const std::vector<Small> all{
      {"alexnet", "hidden: 64, dropout: 0", large},
      {"autoencoder", "", {.inputs = kDigits.inputs, .targets = {}, .task = "reconstruction"}},
      {"bert", "layers: 2, heads: 2, width: 64, hidden: 128, dropout: 0, attention_dropout: 0", kText},
      {"char_lm", "layers: 2, heads: 2, width: 64", kText},
      {"dcgan", "width: 8", {.inputs = kNoisyImage, .targets = {}, .task = "adversarial"}},
      {"dlrm", "", clicks},
      {"gpt", "layers: 2, heads: 2, width: 64", kText},
      {"graph_convolution",
       "hidden: [32], dropout: 0",
       {.inputs = {{.name = "features", .shape = {48, 4}}, {.name = "adjacency", .shape = {48, 48}}},
        .targets = {{.name = "classes", .shape = {48}, .dtype = at::kLong, .classes = 4}},
        .task = "classification"}},
      {"gru", "layers: 1, width: 64", kText},
      {"lenet", "", kDigits},
      {"llama", "layers: 2, heads: 4, key_value_heads: 2, width: 64", kText},
      {"lstm", "layers: 1, width: 64", kText},
      {"mlp_mixer", "patch: 4, layers: 2, width: 32, token_hidden: 16, channel_hidden: 64", kDigits},
      {"mlp", "hidden: [128]", kDigits},
      {"moe_gpt", "layers: 2, heads: 2, width: 64, experts: 4", kText},
      {"siamese",
       "",
       {.inputs = {{.name = "images", .shape = {3, 1, 28, 28}}},
        .targets = {{.name = "classes", .shape = {3}, .dtype = at::kLong, .classes = 10}},
        .task = "metric_learning"}},
      {"transformer",
       "layers: 2, heads: 2, width: 64, hidden: 128, dropout: 0",
       {.inputs = {kText.inputs[0], kText.inputs[0]}, .targets = kText.targets, .task = kText.task}},
      {"two_tower", "", clicks},
      {"unet",
       "width: 4",
       {.inputs = {{.name = "image", .shape = {3, 32, 32}}},
        .targets = {{.name = "mask", .shape = {32, 32}, .dtype = at::kLong, .classes = 4}},
        .task = "segmentation"}},
      {"vae", "", {.inputs = kNoisyImage, .targets = {}, .task = "variational"}},
      {"convnext", "width: 8, stochastic_depth: 0", large},
      {"densenet", "growth: 4", large},
      {"efficientnet", "width_mult: 0.25, dropout: 0, stochastic_depth: 0", large},
      {"mobilenet", "width_mult: 0.25, dropout: 0", large},
      {"vgg", "width: 8, hidden: 64, dropout: 0", large},
      {"vit", "patch: 8, layers: 2, heads: 2, width: 32, hidden: 64", large},
  };
  return all;
}

// Returns the settings for a model. Models without an entry take images of CIFAR-10's size, and have their own
// defaults.
Small small_model(const std::string& name) {
  for (const auto& small : small_models()) {
    if (name.starts_with(small.begin)) return small;
  }
  const bool resnet = name.find("resne") != std::string::npos;
  return {name, resnet ? "width: 16" : "", classification_samples({3, 32, 32}, 10)};
}

}  // namespace

std::vector<Workload> zoo_workloads() {
  std::vector<Workload> all;
  for (const auto& name : Models::global().names()) {
    if (name == "exported" || name == "torchscript") continue;
    const Small small = small_model(name);
    const std::string model = "{name: " + name + (small.fields.empty() ? "" : ", " + small.fields) + "}";
    all.push_back({.name = "zoo_" + name,
                   .model = model,
                   .own_model = model,
                   .sample = small.sample,
                   .samples = 256,
                   .batch = 16,
                   .learning_rate = 0.001,
                   .in_torch = false,
                   .of_zoo = true});
  }
  return all;
}

}  // namespace phalanx::bench_train
