// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/selecting_communicator.h"

#include <stdexcept>
#include <utility>

#include "framework/collectives/selection/selectable_ops.h"

namespace phalanx {
namespace {

std::vector<std::string> names_of(const Communicator& inner,
                                  const std::vector<SelectingCommunicator::Alternative>& alternatives) {
  std::vector<std::string> names;
  for (const auto& [backend, group] : alternatives) {
    if (group->size() != inner.size() || group->rank() != inner.rank()) {
      throw std::invalid_argument("backend " + backend + " has this process as rank " + std::to_string(group->rank()) +
                                  " of " + std::to_string(group->size()) + ", " + inner.name() + " as rank " +
                                  std::to_string(inner.rank()) + " of " + std::to_string(inner.size()));
    }
    names.push_back(backend);
  }
  return names;
}

Work launch_by(const ResolvedTable::Candidate& candidate, const CommunicatorPtr& group, Operation operation) {
  if (candidate.algorithm == nullptr) return group->launch(std::move(operation));
  return launch(group, *candidate.algorithm, std::move(operation));
}

}  // namespace

SelectingCommunicator::SelectingCommunicator(CommunicatorPtr inner, SelectionTable table,
                                             std::vector<Alternative> alternatives)
    : Decorator(std::move(inner)),
      table_(std::move(table)),
      alternatives_(std::move(alternatives)),
      resolved_(table_, size(), names_of(*this->inner(), alternatives_)) {}

Work SelectingCommunicator::launch(Operation operation) {
  const Call call = operation.call;
  if (!is_selectable(call.op)) return Decorator::launch(std::move(operation));
  for (const auto& candidate : resolved_.find(call.op, selection_bytes(call))) {
    const auto& group = candidate.backend < 0 ? inner() : alternatives_[candidate.backend].group;
    if (candidate.algorithm != nullptr && !suits(*candidate.algorithm, *group, operation)) continue;
    if (candidate.backend < 0) return launch_by(candidate, group, std::move(operation));
    // Another backend has its own order. Inside run(), its operation waits for all operations launched here earlier.
    return inner()->run(call, [candidate, group, operation = std::move(operation)]() mutable {
      launch_by(candidate, group, std::move(operation)).wait();
    });
  }
  return Decorator::launch(std::move(operation));
}

CommunicatorPtr SelectingCommunicator::split(int color, int key) {
  auto child = inner()->split(color, key);
  std::vector<Alternative> alternatives;
  for (const auto& [backend, group] : alternatives_) alternatives.push_back({backend, group->split(color, key)});
  if (!child) return nullptr;
  return std::make_shared<SelectingCommunicator>(std::move(child), table_, std::move(alternatives));
}

CommunicatorPtr SelectingCommunicator::shrink() {
  auto survivors = inner()->shrink();
  std::vector<Alternative> alternatives;
  for (const auto& [backend, group] : alternatives_) alternatives.push_back({backend, group->shrink()});
  return std::make_shared<SelectingCommunicator>(std::move(survivors), table_, std::move(alternatives));
}

CommunicatorPtr SelectingCommunicator::wrap(CommunicatorPtr child) {
  return std::make_shared<SelectingCommunicator>(std::move(child), table_);
}

}  // namespace phalanx
