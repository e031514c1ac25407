// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/selecting_communicator.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <numeric>
#include <stdexcept>
#include <utility>

#include "framework/collectives/selection/selectable_ops.h"
#include "framework/comm/texts.h"

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

// Returns the ranks 0, 1, ... of a world, after telling the selection where they are. Empty if it need not know.
std::vector<int> ranks_of_world(Communicator& world, LiveSelection& selection) {
  if (!selection.needs_ranks()) return {};
  selection.set_hosts(all_gather_text(selection.host(), world));
  std::vector<int> ranks(static_cast<std::size_t>(world.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Returns the ranks in the world that a group has, in the group's order. Collective over the group.
std::vector<int> gather_ranks(Communicator& group, int own) {
  const at::Tensor all = at::zeros({group.size()}, at::kInt);
  group.all_gather(all, at::full({1}, own, at::kInt)).wait();
  const auto* ranks = all.const_data_ptr<int>();
  return {ranks, ranks + group.size()};
}

ResolvedTable::Group described(const Communicator& group, const LiveSelection& selection,
                               const std::vector<int>& ranks) {
  return {.ranks = group.size(), .scope = ranks.empty() ? Scope::kHost : selection.scope_of(ranks)};
}

}  // namespace

SelectingCommunicator::SelectingCommunicator(CommunicatorPtr inner, std::shared_ptr<LiveSelection> selection,
                                             std::vector<Alternative> alternatives, std::vector<int> ranks)
    : Decorator(std::move(inner)),
      selection_(std::move(selection)),
      alternatives_(std::move(alternatives)),
      ranks_(std::move(ranks)),
      sizes_(ranks_.empty() ? nullptr : &selection_->sizes_of(ranks_)),
      version_(selection_->version()),
      resolved_(selection_->table(), described(*this->inner(), *selection_, ranks_),
                names_of(*this->inner(), alternatives_)) {}

SelectingCommunicator::SelectingCommunicator(CommunicatorPtr inner, std::shared_ptr<LiveSelection> selection,
                                             std::vector<Alternative> alternatives)
    : SelectingCommunicator(inner, selection, std::move(alternatives), ranks_of_world(*inner, *selection)) {}

SelectingCommunicator::SelectingCommunicator(CommunicatorPtr inner, SelectionTable table,
                                             std::vector<Alternative> alternatives)
    : SelectingCommunicator(std::move(inner), std::make_shared<LiveSelection>(std::move(table)),
                            std::move(alternatives)) {}

void SelectingCommunicator::resolve() {
  version_ = selection_->version();
  resolved_ =
      ResolvedTable(selection_->table(), described(*inner(), *selection_, ranks_), names_of(*inner(), alternatives_));
}

Work SelectingCommunicator::launch(Operation operation) {
  const Call call = operation.call;
  if (!is_selectable(call.op)) return Decorator::launch(std::move(operation));
  if (version_ != selection_->version()) resolve();
  const auto bytes = selection_bytes(call);
  const auto device = device_of(operation);
  if (sizes_ != nullptr && selection_->recording() && bytes != kAnySize && device == c10::kCPU) {
    sizes_->add(call.op, bytes);
  }
  for (const auto& candidate : resolved_.find(call.op, bytes, device)) {
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

CommunicatorPtr SelectingCommunicator::with_same_selection(CommunicatorPtr child,
                                                           std::vector<Alternative> alternatives) const {
  auto ranks = ranks_.empty() ? std::vector<int>() : gather_ranks(*child, ranks_[static_cast<std::size_t>(rank())]);
  return CommunicatorPtr(
      new SelectingCommunicator(std::move(child), selection_, std::move(alternatives), std::move(ranks)));
}

CommunicatorPtr SelectingCommunicator::split(int color, int key) {
  auto child = inner()->split(color, key);
  std::vector<Alternative> alternatives;
  for (const auto& [backend, group] : alternatives_) alternatives.push_back({backend, group->split(color, key)});
  return child ? with_same_selection(std::move(child), std::move(alternatives)) : nullptr;
}

CommunicatorPtr SelectingCommunicator::do_shrink() {
  auto survivors = inner()->shrink();
  std::vector<Alternative> alternatives;
  for (const auto& [backend, group] : alternatives_) alternatives.push_back({backend, group->shrink()});
  return with_same_selection(std::move(survivors), std::move(alternatives));
}

std::string SelectingCommunicator::why_no_shrink() const {
  std::string why = inner()->why_no_shrink();
  for (const auto& [backend, group] : alternatives_) {
    if (why.empty()) why = group->why_no_shrink();
  }
  return why;
}

CommunicatorPtr SelectingCommunicator::wrap(CommunicatorPtr child) { return with_same_selection(std::move(child), {}); }

}  // namespace phalanx
