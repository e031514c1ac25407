#include "framework/comm/decorator.h"

namespace phalanx {

Work Decorator::broadcast(at::Tensor tensor, int root) { return inner_->broadcast(std::move(tensor), root); }

Work Decorator::reduce(at::Tensor tensor, Reduction op, int root) {
  return inner_->reduce(std::move(tensor), std::move(op), root);
}

Work Decorator::all_reduce(at::Tensor tensor, Reduction op) {
  return inner_->all_reduce(std::move(tensor), std::move(op));
}

Work Decorator::reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) {
  return inner_->reduce_scatter(std::move(output), std::move(input), std::move(op), counts);
}

Work Decorator::all_gather(at::Tensor output, at::Tensor input, Counts counts) {
  return inner_->all_gather(std::move(output), std::move(input), counts);
}

Work Decorator::gather(at::Tensor output, at::Tensor input, int root, Counts counts) {
  return inner_->gather(std::move(output), std::move(input), root, counts);
}

Work Decorator::scatter(at::Tensor output, at::Tensor input, int root, Counts counts) {
  return inner_->scatter(std::move(output), std::move(input), root, counts);
}

Work Decorator::all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts) {
  return inner_->all_to_all(std::move(output), std::move(input), output_counts, input_counts);
}

Work Decorator::send(at::Tensor tensor, int peer, int tag) { return inner_->send(std::move(tensor), peer, tag); }

Work Decorator::recv(at::Tensor tensor, int peer, int tag) { return inner_->recv(std::move(tensor), peer, tag); }

Work Decorator::barrier(std::optional<Seconds> timeout) { return inner_->barrier(timeout); }

Work Decorator::run(const Call& call, std::function<void()> body) { return inner_->run(call, std::move(body)); }

CommunicatorPtr Decorator::split(int color, int key) {
  auto child = inner_->split(color, key);
  return child ? wrap(std::move(child)) : nullptr;
}

at::Tensor Decorator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  return inner_->allocate(sizes, options);
}

at::Tensor Decorator::allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) {
  return inner_->allocate_shared(sizes, options);
}

}  // namespace phalanx
