// SPDX-License-Identifier: Apache-2.0
#include "tests/zoo/model_under_test.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>

#include <utility>

#include "engine/task/task.h"
#include "framework/base/config/config.h"
#include "framework/base/text.h"

namespace phalanx::testing {
namespace {

std::string line_of(const std::string& name, const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const auto size : tensor.sizes()) sizes.push_back(std::to_string(size));
  return name + " [" + join(sizes, ", ") + "]\n";
}

}  // namespace

ModelSpec model_spec(const SampleSpec& sample) { return Tasks::Choice(sample.task).make(sample, nullptr)->model(); }

std::shared_ptr<Model> make_model(const std::string& section, const SampleSpec& sample, std::uint64_t seed) {
  const auto model = config::load_as<Models::Choice>("model", section, "test.yaml");
  at::manual_seed(seed);
  return model.make(model_spec(sample));
}

NamedTensors state_of(const Model& model) {
  NamedTensors state = model.named_parameters();
  for (auto& buffer : model.named_buffers()) state.push_back(std::move(buffer));
  return state;
}

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_of(model)) names.push_back(name);
  return names;
}

std::string layout_of(const Model& model) {
  std::string layout;
  for (const auto& [name, tensor] : state_of(model)) layout += line_of(name, tensor);
  return layout;
}

std::int64_t parameters_of(const Model& model) {
  std::int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

void fill(Model& model) {
  const at::NoGradGuard no_grad;
  double k = 0;
  for (const auto& [name, values] : model.named_parameters()) {
    const bool norm = values.dim() == 1 && name.ends_with("weight");
    const auto i = at::arange(values.numel(), at::kDouble);
    values.copy_((0.2 * at::sin(1.7 * i + k) + (norm ? 1 : 0)).view(values.sizes()));
    ++k;
  }
}

at::Tensor some_text() { return at::tensor({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, at::kLong).view({2, 6}); }

at::Tensor waves(at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return at::sin(0.37 * at::arange(count, at::kDouble)).to(at::kFloat).view(sizes);
}

}  // namespace phalanx::testing
