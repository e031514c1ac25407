// SPDX-License-Identifier: Apache-2.0
#include "tests/zoo/small_models.h"

#include <map>
#include <string>

namespace phalanx::testing {
namespace {

// Fields by the beginning of the model's name.
const std::map<std::string, std::string> kSmall{
    {"alexnet", "hidden: 16, dropout: 0"},
    {"convnext", "width: 8, stochastic_depth: 0"},
    {"dcgan", "width: 8"},
    {"densenet", "growth: 4"},
    {"efficientnet", "width_mult: 0.25, dropout: 0, stochastic_depth: 0"},
    {"graph_convolution", "dropout: 0"},
    {"mlp_mixer", "patch: 4, layers: 2, width: 16, token_hidden: 8, channel_hidden: 32"},
    {"mobilenet", "width_mult: 0.25, dropout: 0"},
    {"resnet", "width: 16"},
    {"resnext", "width: 16"},
    {"unet", "width: 4"},
    {"vgg", "width: 8, hidden: 16, dropout: 0"},
    {"vit", "patch: 4, layers: 2, heads: 2, width: 16, hidden: 32"},
    {"wide_resnet", "width: 16"},
};

}  // namespace

std::string small_section(const std::string& model) {
  for (const auto& [begin, fields] : kSmall) {
    if (model.starts_with(begin)) return "{name: " + model + ", " + fields + "}";
  }
  return model;
}

}  // namespace phalanx::testing
