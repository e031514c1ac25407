// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/fake_world.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/mesh/fake_communicator.h"

namespace phalanx {
namespace {

// Copies as many elements of `from` as fit into `to`, and fills the rest with zeros.
void fill(const at::Tensor& to, const at::Tensor& from) {
  const auto count = std::min(to.numel(), from.numel());
  elements_of(to, 0, count).copy_(elements_of(from, 0, count));
  elements_of(to, count, to.numel() - count).zero_();
}

class FakeGroup final : public FakeCommunicator {
 public:
  struct Common {
    MeshShape shape;
    bool shares_memory;
    std::shared_ptr<OperationLog> log;
    FlightRecorder recorder{};
  };

  FakeGroup(std::shared_ptr<Common> common, std::vector<int> ranks, int rank)
      : common_(std::move(common)),
        ranks_(std::move(ranks)),
        world_rank_(rank),
        axes_(axes_of(common_->shape, ranks_)) {
    rank_ = static_cast<int>(std::ranges::find(ranks_, rank) - ranks_.begin());
    name_ = ranks_.size() == static_cast<std::size_t>(common_->shape.product()) ? "world" : axes_name(axes_);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  const std::string& name() const override { return name_; }
  bool takes(c10::DeviceType device) const override { return device == c10::DeviceType::CPU; }

  Work launch(Operation operation) override {
    common_->log->add(axes_, operation);
    const at::NoGradGuard no_grad;
    move(operation);
    return {};
  }

  Work run(const Call& call, std::function<void()>) override {
    common_->log->add(axes_, call.op, 0);
    return {};
  }

  CommunicatorPtr split(int color, int) override {
    if (color < 0) return nullptr;
    throw ConfigError("a plan supports only the groups of the mesh and of its stages within " + name_);
  }
  CommunicatorPtr group_of(std::vector<int> ranks) override {
    for (auto& rank : ranks) rank = ranks_.at(static_cast<std::size_t>(rank));
    return std::make_shared<FakeGroup>(common_, std::move(ranks), world_rank_);
  }
  std::string why_no_shrink() const override { return cannot_shrink("of a fake world"); }
  bool shares_memory() const override { return size() == 1 || common_->shares_memory; }
  at::Tensor do_allocate(const Allocation& allocation) override {
    return at::zeros(allocation.sizes, allocation.options);
  }
  FlightRecorder& recorder() const override { return common_->recorder; }

 private:
  void move(const Operation& operation) const {
    const auto& [call, output, input, reduction, to, counts, timeout, way] = operation;
    if (call.op == Op::kAllToAll) return fill(output, input);
    if (call.op == Op::kReduceScatter) {
      const PartLayout parts(counts, size(), input.numel());
      return fill(output, parts.of(input, rank_));
    }
    if (call.op == Op::kScatter) {
      if (rank_ == operation.root()) fill(output, PartLayout(counts, size(), input.numel()).of(input, rank_));
    }
    if (call.op == Op::kAllGather || (call.op == Op::kGather && rank_ == operation.root())) {
      const PartLayout parts(counts, size(), output.numel());
      const at::Tensor own = input.clone();  // it may be a part of output
      for (int rank = 0; rank < size(); ++rank) fill(parts.of(output, rank), own.flatten());
    }
  }

  std::shared_ptr<Common> common_;
  std::vector<int> ranks_;  // numbers in the world
  int world_rank_, rank_ = 0;
  AxisBits axes_;
  std::string name_;
};

}  // namespace

CommunicatorPtr make_fake_world(const MeshShape& shape, int rank, bool shares_memory,
                                std::shared_ptr<OperationLog> log) {
  std::vector<int> all(static_cast<std::size_t>(shape.product()));
  std::iota(all.begin(), all.end(), 0);
  auto common = std::make_shared<FakeGroup::Common>(shape, shares_memory, std::move(log));
  return std::make_shared<FakeGroup>(std::move(common), std::move(all), rank);
}

}  // namespace phalanx
