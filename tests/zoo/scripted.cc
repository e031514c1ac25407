// SPDX-License-Identifier: Apache-2.0
#include "tests/zoo/scripted.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <torch/csrc/jit/api/module.h>

#include <cmath>
#include <cstddef>

namespace phalanx::testing {
namespace {

using torch::jit::Module;

Module with_mode(const std::string& name) {
  Module module(name);
  module.register_attribute("training", c10::BoolType::get(), true);
  return module;
}

}  // namespace

void save_scripted_mlp(const std::string& path, const std::vector<std::int64_t>& widths, at::ScalarType dtype) {
  Module mlp = with_mode("__torch__.Mlp");
  std::string source = "def forward(self, x):\n  x = torch.flatten(x, 1)\n";
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::string name = "fc" + std::to_string(i + 1);
    Module linear = with_mode("__torch__." + name);
    const double bound = 1 / std::sqrt(static_cast<double>(widths[i]));
    const auto values = [&](at::IntArrayRef sizes) {
      return (at::rand(sizes) * 2 * bound - bound).to(dtype).set_requires_grad(true);
    };
    linear.register_parameter("weight", values({widths[i + 1], widths[i]}), false);
    linear.register_parameter("bias", values({widths[i + 1]}), false);
    linear.define("def forward(self, x):\n  return torch.linear(x, self.weight, self.bias)\n");
    mlp.register_module(name, linear);
    source += i == 0 ? "" : "  x = torch.relu(x)\n";
    source += "  x = self." + name + ".forward(x)\n";
  }
  mlp.define(source + "  return x\n");
  mlp.save(path);
}

void save_scripted(const std::string& path, const std::vector<ScriptedTensor>& tensors, const std::string& source) {
  Module module = with_mode("__torch__.Net");
  module.register_attribute("steps", c10::IntType::get(), 0);
  for (const auto& [name, sizes, is_parameter, requires_grad] : tensors) {
    module.register_parameter(name, at::full(sizes, 0.1, at::kFloat).set_requires_grad(requires_grad), !is_parameter);
  }
  module.define(source);
  module.save(path);
}

}  // namespace phalanx::testing
