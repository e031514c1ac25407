#pragma once

#include <functional>

#include "framework/comm/decorator.h"

namespace phalanx::hybrid {

/// A group of a hybrid world that lies on one host: collectives are those of `host`, which has the same ranks in the
/// same order, but keep their place among the operations of the world. Messages and barrier stay with the world.
class HostCommunicator final : public Decorator {
 public:
  HostCommunicator(CommunicatorPtr inner, CommunicatorPtr host);

  Work broadcast(at::Tensor tensor, int root) override;
  Work reduce(at::Tensor tensor, Reduction op, int root) override;
  Work all_reduce(at::Tensor tensor, Reduction op) override;
  Work reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) override;
  Work all_gather(at::Tensor output, at::Tensor input, Counts counts) override;
  Work gather(at::Tensor output, at::Tensor input, int root, Counts counts) override;
  Work scatter(at::Tensor output, at::Tensor input, int root, Counts counts) override;
  Work all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts) override;
  CommunicatorPtr split(int color, int key) override;
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) override;
  bool shares_memory() const override { return host_->size() == size(); }
  at::Tensor allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) override;

 protected:
  CommunicatorPtr wrap(CommunicatorPtr child) override;

 private:
  Work run_there(const Call& call, std::function<Work(Communicator& host)> launch);

  CommunicatorPtr host_;
};

/// host.split(color, key), in its place among the operations of `world`.
CommunicatorPtr split_in_order(Communicator& world, Communicator& host, int color, int key);

}  // namespace phalanx::hybrid
