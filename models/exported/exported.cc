// SPDX-License-Identifier: Apache-2.0
// A model made from a program that torch.export.save wrote in Python: docs/python_models.md.
#include <ATen/ops/concat.h>

#include <memory>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/parallel/padding_rows.h"
#include "framework/parallel/sync_batch_norm.h"
#include "models/exported/program.h"
#include "models/model.h"
#include "models/synchronized_batch_norm.h"

namespace phalanx {
namespace {

using exported::Program;
using exported::ProgramTensor;

struct ExportedConfig {
  std::string file;

  template <class V>
  void visit(V& v) {
    v("file", file, "a program that torch.export.save wrote");
  }
};

class Exported final : public Model, public SynchronizedBatchNorm {
 public:
  explicit Exported(const std::string& file) : file_(file), program_(file) {}

  const Program& program() const { return program_; }

  Tensors outputs(const Tensors& inputs) override {
    const auto rows = inputs.at(0).size(0), missing = program_.min_rows() - rows;
    if (missing <= 0) return program_.run(inputs, training_);
    if (training_ && program_.uses_batch_statistics() && !PaddingRows::current()) {
      throw ConfigError("model.file: " + file_ + " takes at least " + std::to_string(program_.min_rows()) +
                        " samples, but a rank has " + std::to_string(rows) +
                        " of a batch, and batch norm allows no padding: choose another batch size");
    }
    Tensors padded;
    for (const auto& input : inputs) {
      auto sizes = input.sizes().vec();
      sizes[0] = missing;
      padded.push_back(at::concat({input, input.narrow(0, 0, 1).expand(sizes)}));
    }
    auto outputs = program_.run(padded, training_);
    for (auto& output : outputs) output = output.narrow(0, 0, rows);  // so padding rows have no weight
    return outputs;
  }

  void train(bool on) override { training_ = on; }

  NamedTensors named_parameters() const override { return program_.parameters(); }
  NamedTensors named_buffers() const override { return program_.buffers(); }

  std::int64_t synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& statistics) override {
    return program_.synchronize(statistics);
  }

 private:
  std::string file_;
  Program program_;
  bool training_ = true;
};

std::string text_of(const std::vector<std::int64_t>& shape, at::ScalarType dtype) {
  std::string text = "[n";
  for (const auto length : shape) text += ", " + std::to_string(length);
  return text + "] " + at::toString(dtype);
}

void compare(const std::string& file, const std::string& what, const std::vector<ProgramTensor>& own,
             const std::vector<TensorSpec>& wanted) {
  if (own.size() != wanted.size()) {
    throw ConfigError("model.file: " + file + " has " + std::to_string(own.size()) + " " + what +
                      "s, but the task has " + std::to_string(wanted.size()));
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].shape == wanted[i].shape && own[i].dtype == wanted[i].dtype) continue;
    throw ConfigError("model.file: " + file + ": its " + what + " " + own[i].name + " is " +
                      text_of(own[i].shape, own[i].dtype) + ", but the task's " + wanted[i].name + " is " +
                      text_of(wanted[i].shape, wanted[i].dtype));
  }
}

std::shared_ptr<Exported> make_exported(const ExportedConfig& config, const ModelSpec& spec) {
  if (config.file.empty()) throw ConfigError("model.file: name the file that torch.export.save wrote");
  auto model = std::make_shared<Exported>(config.file);
  compare(config.file, "input", model->program().inputs(), spec.inputs);
  compare(config.file, "output", model->program().outputs(), spec.outputs);
  return model;
}

const bool exported_registered =
    Models::global().add<ExportedConfig>("exported", "a program of torch.export, written in Python", make_exported);

}  // namespace
}  // namespace phalanx
