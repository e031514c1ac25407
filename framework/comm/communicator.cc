// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/communicator.h"

#include <stdexcept>
#include <utility>

#include "framework/base/error.h"
#include "framework/comm/operations/arguments.h"

namespace phalanx {

Work Communicator::broadcast(at::Tensor tensor, int root, Place place) {
  const PlaceScope scope(place);
  return launch(checked_broadcast(*this, std::move(tensor), root));
}

Work Communicator::reduce(at::Tensor tensor, Reduction op, int root, Place place) {
  const PlaceScope scope(place);
  return launch(checked_reduce(*this, std::move(tensor), std::move(op), root));
}

Work Communicator::all_reduce(at::Tensor tensor, Reduction op, Place place) {
  const PlaceScope scope(place);
  return launch(checked_all_reduce(*this, std::move(tensor), std::move(op)));
}

Work Communicator::reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts, Place place) {
  const PlaceScope scope(place);
  return launch(checked_reduce_scatter(*this, std::move(output), std::move(input), std::move(op), counts));
}

Work Communicator::all_gather(at::Tensor output, at::Tensor input, Counts counts, Place place) {
  const PlaceScope scope(place);
  return launch(checked_all_gather(*this, std::move(output), std::move(input), counts));
}

Work Communicator::gather(at::Tensor output, at::Tensor input, int root, Counts counts, Place place) {
  const PlaceScope scope(place);
  return launch(checked_gather(*this, std::move(output), std::move(input), root, counts));
}

Work Communicator::scatter(at::Tensor output, at::Tensor input, int root, Counts counts, Place place) {
  const PlaceScope scope(place);
  return launch(checked_scatter(*this, std::move(output), std::move(input), root, counts));
}

Work Communicator::all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts,
                              Place place) {
  const PlaceScope scope(place);
  return launch(checked_all_to_all(*this, std::move(output), std::move(input), output_counts, input_counts));
}

Work Communicator::send(at::Tensor tensor, int peer, int tag, Place place) {
  const PlaceScope scope(place);
  return launch(checked_send(*this, std::move(tensor), peer, tag));
}

Work Communicator::recv(at::Tensor tensor, int peer, int tag, Place place) {
  const PlaceScope scope(place);
  return launch(checked_recv(*this, std::move(tensor), peer, tag));
}

Work Communicator::barrier(std::optional<Seconds> timeout, Place place) {
  const PlaceScope scope(place);
  return launch({.call = {.op = Op::kBarrier}, .timeout = timeout});
}

at::Tensor Communicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  return do_allocate(checked_allocation(*this, Op::kAllocate, sizes, options));
}

at::Tensor Communicator::allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) {
  return do_allocate(checked_allocation(*this, Op::kAllocateShared, sizes, options));
}

CommunicatorPtr Communicator::shrink() {
  if (const auto why = why_no_shrink(); !why.empty()) throw ConfigError(why);
  return do_shrink();
}

CommunicatorPtr Communicator::do_shrink() { throw std::logic_error(name() + " can shrink, but does not say how"); }

std::string cannot_shrink(const std::string& backend) {
  return "backend " + backend +
         " cannot form a group of the ranks that are left (shrink): inproc, shm, gloo and hybrid of them can, and mpi "
         "under `mpirun --with-ft ulfm`; elsewhere start the job again from its last checkpoint";
}

}  // namespace phalanx
