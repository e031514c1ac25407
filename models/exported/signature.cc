// SPDX-License-Identifier: Apache-2.0
#include "models/exported/signature.h"

#include <algorithm>
#include <map>
#include <utility>

#include "framework/base/error.h"
#include "models/exported/arguments.h"

namespace phalanx::exported {
namespace {

using json = nlohmann::ordered_json;

class Reader {
 public:
  Reader(const std::string& path, const Archive& archive, const json& program)
      : path_(path),
        weights_(archive.weights()),
        constants_(archive.constants()),
        signature_(program.at("graph_module").at("signature")),
        source_(program.at("graph_module").at("graph")),
        ranges_(program.at("range_constraints")) {}

  Signature read() {
    for (const auto& spec : signature_.at("input_specs")) {
      const auto one = union_of(spec);
      if (one.key() == "user_input") {
        found_.inputs.push_back(tensor_of(one.value().at("arg"), true));
        found_.given.emplace_back();
      } else {
        read_weight(one.key(), one.value());
      }
    }
    for (const auto& spec : signature_.at("output_specs")) {
      const auto kind = union_of(spec).key();
      if (kind != "user_output") {
        refuse("is not a training program (" + kind + "): save what torch.export.export gives, without decompositions");
      }
      found_.outputs.push_back(tensor_of(spec.at(kind).at("arg"), false));
    }
    return std::move(found_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw ConfigError("model.file: " + path_ + ": " + why); }

  void read_weight(const std::string& kind, const json& value) {
    if (kind != "parameter" && kind != "buffer" && kind != "tensor_constant") {
      refuse("an input of kind " + kind + " is not supported");
    }
    const auto name = value.at(kind + "_name").get<std::string>();
    const auto slot = value.at("arg").at("name").get<std::string>();
    const auto tensor = tensor_named(name);
    found_.kept.insert(slot);
    if (name.ends_with("num_batches_tracked")) found_.counters.insert(slot);
    found_.given.push_back(tensor);
    const bool listed = kind == "parameter" || (kind == "buffer" && value.at("persistent").get<bool>());
    if (!listed || !seen_.insert(tensor.unsafeGetTensorImpl()).second) return;
    // A parameter that is not learned is saved in the same way as a buffer.
    (tensor.requires_grad() ? found_.parameters : found_.buffers).emplace_back(name, tensor);
  }

  at::Tensor tensor_named(const std::string& name) const {
    auto found = weights_.find(name);
    if (found != weights_.end()) return found->second;
    found = constants_.find(name);
    if (found == constants_.end()) refuse("lacks the values of " + name);
    return found->second;
  }

  ProgramTensor tensor_of(const json& argument, bool is_input) {
    const std::string kind = is_input ? "input" : "output";
    if (!argument.contains("as_tensor")) refuse("an " + kind + " of the program is not a tensor");
    ProgramTensor tensor{.name = argument.at("as_tensor").at("name"), .shape = {}};
    const auto& meta = source_.at("tensor_values").at(tensor.name);
    tensor.dtype = dtype_of(meta.at("dtype").get<int>());
    const auto& sizes = meta.at("sizes");
    const std::string marker = "Symbol('";
    const auto batch = sizes.empty() || !sizes[0].contains("as_expr")
                           ? std::string()
                           : sizes[0].at("as_expr").at("expr_str").get<std::string>();
    if (!batch.starts_with(marker)) {
      refuse("the first dimension of the " + kind + " " + tensor.name +
             " is not the batch: export with dynamic_shapes={\"" + tensor.name +
             "\": {0: torch.export.Dim(\"batch\")}}");
    }
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      if (!sizes[i].contains("as_int")) {
        refuse("dimension " + std::to_string(i) + " of the " + kind + " " + tensor.name +
               " is dynamic: only the batch dimension may be");
      }
      tensor.shape.push_back(sizes[i].at("as_int").get<std::int64_t>());
    }
    if (is_input) {
      const auto symbol = batch.substr(marker.size(), batch.find('\'', marker.size()) - marker.size());
      const auto range = ranges_.value(symbol, json::object());
      if (range.contains("min_val") && range.at("min_val").is_number()) {
        found_.min_rows = std::max(found_.min_rows, range.at("min_val").get<std::int64_t>());
      }
      if (range.contains("max_val") && range.at("max_val").is_number()) {
        refuse("the batch dimension of " + tensor.name + " has a maximum: export without Dim(max=...)");
      }
    }
    return tensor;
  }

  const std::string& path_;
  const std::map<std::string, at::Tensor> weights_, constants_;
  const json &signature_, &source_, &ranges_;
  std::set<const at::TensorImpl*> seen_;
  Signature found_;
};

}  // namespace

Signature read_signature(const std::string& path, const Archive& archive, const json& program) {
  return Reader(path, archive, program).read();
}

}  // namespace phalanx::exported
