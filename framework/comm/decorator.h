#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "framework/comm/communicator.h"

namespace phalanx {

/// A communicator that passes everything on to another: the base of those that change a few operations.
///
/// What a subclass does instead of passing an operation on, it launches as a body of inner().run(), so that it keeps
/// its place in the order. Groups that are split from it are decorated by wrap().
class Decorator : public Communicator {
 public:
  explicit Decorator(CommunicatorPtr inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }

  Work broadcast(at::Tensor tensor, int root) override;
  Work reduce(at::Tensor tensor, Reduction op, int root) override;
  Work all_reduce(at::Tensor tensor, Reduction op) override;
  Work reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) override;
  Work all_gather(at::Tensor output, at::Tensor input, Counts counts) override;
  Work gather(at::Tensor output, at::Tensor input, int root, Counts counts) override;
  Work scatter(at::Tensor output, at::Tensor input, int root, Counts counts) override;
  Work all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts) override;
  Work send(at::Tensor tensor, int peer, int tag) override;
  Work recv(at::Tensor tensor, int peer, int tag) override;
  Work barrier(std::optional<Seconds> timeout) override;
  Work run(const Call& call, std::function<void()> body) override;
  CommunicatorPtr split(int color, int key) override;
  at::Tensor allocate(at::IntArrayRef sizes, at::TensorOptions options) override;
  bool shares_memory() const override { return inner_->shares_memory(); }
  at::Tensor allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) override;
  const FlightRecorder& recorder() const override { return inner_->recorder(); }

 protected:
  const CommunicatorPtr& inner() const { return inner_; }

  /// The same decoration of a group that was split from inner().
  virtual CommunicatorPtr wrap(CommunicatorPtr child) = 0;

 private:
  CommunicatorPtr inner_;
};

}  // namespace phalanx
