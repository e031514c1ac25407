#include "framework/collectives/selection/selecting_communicator.h"

#include <stdexcept>
#include <utility>

#include "framework/collectives/selection/native.h"
#include "framework/comm/arguments.h"

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

Work launch_by(const Decisions::Way& way, const CommunicatorPtr& group, const Call& call, Arguments arguments) {
  if (way.algorithm == nullptr) return launch_native(*group, call.op, arguments);
  return launch(group, *way.algorithm, call, std::move(arguments));
}

}  // namespace

SelectingCommunicator::SelectingCommunicator(CommunicatorPtr inner, SelectionTable table,
                                             std::vector<Alternative> alternatives)
    : Decorator(std::move(inner)),
      table_(std::move(table)),
      alternatives_(std::move(alternatives)),
      decisions_(table_, size(), names_of(*this->inner(), alternatives_)) {}

Work SelectingCommunicator::select(const Call& call, Arguments arguments) {
  for (const auto& way : decisions_.find(call.op, selection_bytes(call))) {
    const auto& group = way.backend < 0 ? inner() : alternatives_[way.backend].group;
    if (way.algorithm != nullptr && !suits(*way.algorithm, *group, arguments)) continue;
    if (way.backend < 0) return launch_by(way, group, call, std::move(arguments));
    // Another backend has an order of its own. Inside run() its operation waits for all that was launched here before.
    return inner()->run(
        call, [way, group, call, arguments = std::move(arguments)] { launch_by(way, group, call, arguments).wait(); });
  }
  return launch_native(*inner(), call.op, arguments);
}

Work SelectingCommunicator::broadcast(at::Tensor tensor, int root) {
  const Call call = check_broadcast(*this, tensor, root);
  return select(call, {std::move(tensor), {}, {}, root, {}, {}});
}

Work SelectingCommunicator::reduce(at::Tensor tensor, Reduction op, int root) {
  const Call call = check_reduce(*this, tensor, op, root);
  return select(call, {std::move(tensor), {}, std::move(op), root, {}, {}});
}

Work SelectingCommunicator::all_reduce(at::Tensor tensor, Reduction op) {
  const Call call = check_all_reduce(tensor, op);
  return select(call, {std::move(tensor), {}, std::move(op), -1, {}, {}});
}

Work SelectingCommunicator::reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) {
  const Call call = check_reduce_scatter(*this, output, input, op, counts);
  return select(call, {std::move(output), std::move(input), std::move(op), -1, {}, counts.vec()});
}

Work SelectingCommunicator::all_gather(at::Tensor output, at::Tensor input, Counts counts) {
  const Call call = check_all_gather(*this, output, input, counts);
  return select(call, {std::move(output), std::move(input), {}, -1, {}, counts.vec()});
}

Work SelectingCommunicator::gather(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const Call call = check_gather(*this, output, input, root, counts);
  return select(call, {std::move(output), std::move(input), {}, root, {}, counts.vec()});
}

Work SelectingCommunicator::scatter(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const Call call = check_scatter(*this, output, input, root, counts);
  return select(call, {std::move(output), std::move(input), {}, root, {}, counts.vec()});
}

Work SelectingCommunicator::all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts) {
  const Call call = check_all_to_all(*this, output, input, output_counts, input_counts);
  return select(call, {std::move(output), std::move(input), {}, -1, output_counts.vec(), input_counts.vec()});
}

CommunicatorPtr SelectingCommunicator::split(int color, int key) {
  auto child = inner()->split(color, key);
  std::vector<Alternative> alternatives;
  for (const auto& [backend, group] : alternatives_) alternatives.push_back({backend, group->split(color, key)});
  if (!child) return nullptr;
  return std::make_shared<SelectingCommunicator>(std::move(child), table_, std::move(alternatives));
}

CommunicatorPtr SelectingCommunicator::wrap(CommunicatorPtr child) {
  return std::make_shared<SelectingCommunicator>(std::move(child), table_);
}

}  // namespace phalanx
