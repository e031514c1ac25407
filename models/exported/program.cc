// SPDX-License-Identifier: Apache-2.0
#include "models/exported/program.h"

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "framework/base/error.h"
#include "models/exported/archive.h"
#include "models/exported/graph_builder.h"
#include "models/exported/graph_run.h"
#include "models/exported/signature.h"

namespace phalanx::exported {

using c10::IValue;

struct Program::Implementation {
  std::string path;
  Signature signature;
  BuiltGraph built;
  std::shared_ptr<const BatchStatistics> statistics;
};

Program::Program(const std::string& path) : implementation_(std::make_unique<Implementation>()) {
  auto& self = *implementation_;
  self.path = path;
  const auto refuse = [&](const std::string& why) { throw ConfigError("model.file: " + path + ": " + why); };
  try {
    const Archive archive(path);
    const auto program = archive.program();
    self.signature = read_signature(path, archive, program);
    self.built =
        build_graph(path, program.at("graph_module").at("graph"), self.signature.kept, self.signature.counters);
    const auto inputs = self.built.graph->inputs.size(), outputs = self.built.graph->outputs.size();
    if (inputs != self.signature.given.size() || outputs != self.signature.outputs.size()) {
      refuse("its graph has " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
             " outputs, but its signature has " + std::to_string(self.signature.given.size()) + " and " +
             std::to_string(self.signature.outputs.size()));
    }
  } catch (const nlohmann::ordered_json::exception& error) {
    refuse(std::string("is malformed: ") + error.what());
  } catch (const std::logic_error& error) {
    refuse(std::string("is malformed: ") + error.what());
  } catch (const ConfigError&) {
    throw;
  } catch (const DataError& error) {
    throw ConfigError(std::string("model.file: ") + error.what());
  } catch (const std::runtime_error& error) {
    refuse(std::string("is malformed: ") + error.what());
  } catch (const c10::Error& error) {  // LibTorch refuses the layout of a tensor
    refuse(std::string("is malformed: ") + error.what_without_backtrace());
  }
  if (self.built.modes.any && !self.built.modes.training) {
    refuse("was exported in evaluation mode: call model.train() before torch.export.export");
  }
}

Program::~Program() = default;

const std::vector<ProgramTensor>& Program::inputs() const { return implementation_->signature.inputs; }
const std::vector<ProgramTensor>& Program::outputs() const { return implementation_->signature.outputs; }
std::int64_t Program::min_rows() const { return implementation_->signature.min_rows; }
bool Program::uses_batch_statistics() const { return implementation_->built.modes.batch_statistics; }
NamedTensors Program::parameters() const { return implementation_->signature.parameters; }
NamedTensors Program::buffers() const { return implementation_->signature.buffers; }

std::vector<at::Tensor> Program::run(const std::vector<at::Tensor>& inputs, bool training) {
  const auto& self = *implementation_;
  std::vector<IValue> arguments;
  std::size_t next = 0;
  for (const auto& tensor : self.signature.given) {
    arguments.emplace_back(tensor.defined() ? tensor : inputs.at(next++));
  }
  const auto& parameters = self.signature.parameters;
  const bool in_double = !parameters.empty() && parameters[0].second.scalar_type() == at::kDouble;
  const RunMode mode{
      .program = self.path, .training = training, .in_double = in_double, .statistics = self.statistics.get()};
  std::vector<at::Tensor> outputs;
  for (auto& value : run_graph(*self.built.graph, arguments, mode)) outputs.push_back(std::move(value).toTensor());
  return outputs;
}

std::int64_t Program::synchronize(std::shared_ptr<const BatchStatistics> statistics) {
  std::int64_t layers = 0;
  for (const auto& node : implementation_->built.graph->nodes) {
    if (node.kind != Node::Kind::kBatchNorm) continue;
    if (node.arguments[1].reads().empty() || node.arguments[2].reads().empty()) {
      throw ConfigError("train.sync_batch_norm: " + node.name + " is batch norm without weight and bias");
    }
    ++layers;
  }
  implementation_->statistics = std::move(statistics);
  return layers;
}

}  // namespace phalanx::exported
