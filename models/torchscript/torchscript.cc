// SPDX-License-Identifier: Apache-2.0
// A model made from a program that torch.jit.save wrote in Python: docs/python_models.md.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "models/model.h"
#include "models/synchronized_batch_norm.h"
#include "models/torchscript/script.h"

namespace phalanx {
namespace {

using torchscript::Script;

struct TorchScriptConfig {
  std::string file;
  bool trust = false;

  template <class V>
  void visit(V& v) {
    v("file", file, "a program that torch.jit.save wrote");
    v("trust", trust, "run the file's program, which may do whatever this process may");
  }
};

class TorchScript final : public Model, public SynchronizedBatchNorm {
 public:
  explicit TorchScript(const std::string& file) : file_(file), script_(file) { train(true); }

  const Script& script() const { return script_; }

  Tensors outputs(const Tensors& inputs) override { return script_.run(inputs); }
  void train(bool on) override { script_.train(on); }

  NamedTensors named_parameters() const override { return script_.parameters(); }
  NamedTensors named_buffers() const override { return script_.buffers(); }

  std::int64_t synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& /*statistics*/) override {
    if (script_.batch_norms() == 0) return 0;
    throw ConfigError("train.sync_batch_norm: " + file_ +
                      " is a program of TorchScript, whose batch norm sees only one rank; write it with torch.export, "
                      "for the model \"exported\"");
  }

 private:
  std::string file_;
  Script script_;
};

std::string text_of(const at::Tensor& tensor) {
  std::string text = "[";
  for (const auto length : tensor.sizes()) text += (text.size() > 1 ? ", " : "") + std::to_string(length);
  return text + "] " + at::toString(tensor.scalar_type());
}

at::Tensor zeros_like(const TensorSpec& spec, std::int64_t rows) {
  auto sizes = spec.shape;
  sizes.insert(sizes.begin(), rows);
  return at::zeros(sizes, spec.dtype);
}

// Runs the program on zeros to find out whether its shapes fit, since TorchScript does not state them. Uses three rows,
// because the examples for a trace may have had one or two.
void try_out(TorchScript& model, const std::string& file, const ModelSpec& spec) {
  constexpr std::int64_t kRows = 3;
  const auto refuse = [&](const std::string& why) { throw ConfigError("model.file: " + file + ": " + why); };
  const auto& script = model.script();
  if (spec.inputs.size() < script.min_inputs() || spec.inputs.size() > script.max_inputs()) {
    const auto least = std::to_string(script.min_inputs()), most = std::to_string(script.max_inputs());
    refuse("its forward takes " + (least == most ? least : least + " to " + most) + " tensors, but the task has " +
           std::to_string(spec.inputs.size()));
  }
  Tensors inputs, outputs;
  std::string given;
  for (const auto& input : spec.inputs) {
    inputs.push_back(zeros_like(input, kRows));
    given += (given.empty() ? "" : ", ") + text_of(inputs.back());
  }
  model.train(false);
  try {
    const at::AutoGradMode gradients(true);
    outputs = model.outputs(inputs);
  } catch (const ConfigError&) {
    throw;
  } catch (const c10::Error& error) {
    refuse("its forward fails for a batch of the dataset's shape, " + given + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    refuse("its forward fails for a batch of the dataset's shape, " + given + ": " + error.what());
  }
  model.train(true);
  if (outputs.size() != spec.outputs.size()) {
    refuse("its forward returns " + std::to_string(outputs.size()) + " tensors, but the task has " +
           std::to_string(spec.outputs.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor wanted = zeros_like(spec.outputs[i], kRows);
    if (outputs[i].sizes() == wanted.sizes() && outputs[i].scalar_type() == wanted.scalar_type()) continue;
    refuse("of inputs " + given + ", its output " + std::to_string(i) + " is " + text_of(outputs[i]) +
           ", but the task's " + spec.outputs[i].name + " is " + text_of(wanted));
  }
  if (std::ranges::none_of(outputs, [](const auto& output) { return output.requires_grad(); })) {
    refuse("its outputs have no gradient: its forward computes them under torch.no_grad() or detaches them");
  }
}

std::shared_ptr<TorchScript> make_torchscript(const TorchScriptConfig& config, const ModelSpec& spec) {
  if (config.file.empty()) throw ConfigError("model.file: name the file that torch.jit.save wrote");
  if (!config.trust) {
    throw ConfigError("model.trust: " + config.file +
                      " is a program of TorchScript, which may do whatever this process may: set trust: true if you "
                      "trust whoever wrote it");
  }
  auto model = std::make_shared<TorchScript>(config.file);
  try_out(*model, config.file, spec);
  return model;
}

const bool torchscript_registered = Models::global().add<TorchScriptConfig>(
    "torchscript", "a program of torch.jit.script, written in Python", make_torchscript);

}  // namespace
}  // namespace phalanx
