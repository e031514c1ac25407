// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/algorithm.h"

#include <stdexcept>

#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {

// Looks at a tensor that every rank has.
c10::DeviceType device_of(const Operation& operation) {
  const at::Tensor& own = operation.call.op == Op::kGather ? operation.input : operation.output;
  return own.defined() ? own.device().type() : c10::kCPU;
}

bool suits(const Algorithm& algorithm, const Communicator& group, const Operation& operation) {
  if (device_of(operation) != c10::kCPU) return false;
  return !algorithm.suits || algorithm.suits(group, operation);
}

bool suits_commutative(const Communicator&, const Operation& operation) { return operation.reduction.commutative(); }

Algorithms& Algorithms::global() {
  static Algorithms algorithms;
  return algorithms;
}

bool Algorithms::add(Algorithm algorithm) {
  const auto key = std::pair(algorithm.op, algorithm.name);
  if (all_.emplace(key, std::move(algorithm)).second) return true;
  throw std::logic_error("registered twice: " + std::string(to_string(key.first)) + " algorithm " + key.second);
}

const Algorithm& Algorithms::find(Op op, const std::string& name) const {
  if (const auto found = all_.find({op, name}); found != all_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto* algorithm : of(op)) names.push_back(algorithm->name);
  const std::string near = nearest(name, names);
  throw ConfigError("no algorithm \"" + name + "\" for " + std::string(to_string(op)) +
                    (near.empty() ? "" : " (did you mean \"" + near + "\"?)") +
                    "; known: " + (names.empty() ? "none" : join(names, ", ")));
}

std::vector<const Algorithm*> Algorithms::of(Op op) const {
  std::vector<const Algorithm*> found;
  for (const auto& [key, algorithm] : all_) {
    if (key.first == op) found.push_back(&algorithm);
  }
  return found;
}

Work launch(const CommunicatorPtr& group, const Algorithm& algorithm, Operation operation) {
  const Call call = operation.call;
  if (!suits(algorithm, *group, operation)) {
    throw std::invalid_argument("algorithm \"" + algorithm.name + "\" cannot do this " + describe(call) + " on " +
                                group->name() + "; choose another (" + algorithm.about + ")");
  }
  return group->run(call, [group, run = algorithm.run, operation = std::move(operation)] { run(*group, operation); });
}

}  // namespace phalanx
