// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/counting_communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <numeric>
#include <utility>

namespace phalanx {

CountingCommunicator::CountingCommunicator(CommunicatorPtr inner, const MeshShape& shape, std::vector<int> ranks,
                                           std::shared_ptr<OperationLog> log)
    : Decorator(std::move(inner)),
      shape_(shape),
      ranks_(std::move(ranks)),
      axes_(axes_of(shape_, ranks_)),
      log_(std::move(log)) {}

Work CountingCommunicator::launch(Operation operation) {
  log_->add(axes_, operation);
  return inner()->launch(std::move(operation));
}

Work CountingCommunicator::run(const Call& call, std::function<void()> body) {
  log_->add(axes_, call.op, 0);
  return inner()->run(call, std::move(body));
}

CommunicatorPtr CountingCommunicator::wrap(CommunicatorPtr child) {
  const at::Tensor own = at::full({1}, ranks_[static_cast<std::size_t>(inner()->rank())], at::kLong);
  const at::Tensor all = at::empty({child->size()}, at::kLong);
  child->all_gather(all, own).wait();
  const auto* const begin = all.const_data_ptr<std::int64_t>();
  return std::make_shared<CountingCommunicator>(std::move(child), shape_, std::vector<int>(begin, begin + all.numel()),
                                                log_);
}

CommunicatorPtr count_operations(CommunicatorPtr world, const MeshShape& shape, std::shared_ptr<OperationLog> log) {
  std::vector<int> ranks(static_cast<std::size_t>(world->size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_shared<CountingCommunicator>(std::move(world), shape, std::move(ranks), std::move(log));
}

}  // namespace phalanx
