#include "framework/backends/gloo/communicator.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "framework/backends/gloo/collectives.h"
#include "framework/backends/gloo/connect.h"
#include "framework/backends/gloo/split.h"
#include "framework/base/error.h"
#include "framework/collectives/direct.h"
#include "framework/comm/arguments.h"
#include "framework/comm/shared_memory.h"

namespace phalanx::gloo {
namespace {

// A collective over messages, for what Gloo cannot do or does slowly. Its errors are those of the messages.
auto over_messages(CommunicatorPtr self, void (*algorithm)(Communicator&, const Arguments&)) {
  return [self = std::move(self), algorithm](const Turn&, const Arguments& arguments) { algorithm(*self, arguments); };
}

std::int64_t count_elements(at::IntArrayRef sizes, std::size_t item) {
  std::int64_t elements = 1, bytes = 0;
  for (const auto size : sizes) {
    if (size < 0) throw std::invalid_argument("allocate: negative size");
    if (__builtin_mul_overflow(elements, size, &elements)) elements = INT64_MAX;
  }
  if (__builtin_mul_overflow(elements, item, &bytes)) {
    throw std::invalid_argument("allocate: more bytes than an address can count");
  }
  return elements;
}

}  // namespace

GlooCommunicator::GlooCommunicator(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue)
    : group_(std::move(group)),
      queue_(std::move(queue)),
      record_(queue_->recorder().add_group(group_->name())),
      messages_(std::make_shared<Messages>(group_, queue_, record_)) {}

template <class Collective>
Work GlooCommunicator::launch(const Call& call, Arguments arguments, Collective collective) {
  return queue_->launch(*record_, call,
                        [self = shared_from_this(), call, arguments = std::move(arguments), collective] {
                          self->group_->collective(call, {}, [&](const Turn& turn) { collective(turn, arguments); });
                        });
}

Work GlooCommunicator::broadcast(at::Tensor tensor, int root) {
  const Call call = check_broadcast(*this, tensor, root);
  return launch(call, {.output = std::move(tensor), .root = root}, &gloo::broadcast);
}

Work GlooCommunicator::reduce(at::Tensor tensor, Reduction op, int root) {
  const Call call = check_reduce(*this, tensor, op, root);
  const bool by_gloo = op.commutative() && tensor.nbytes() > kDirectReduceBytes;
  Arguments arguments{.output = std::move(tensor), .op = op, .root = root};
  if (by_gloo) return launch(call, std::move(arguments), &gloo::reduce);
  return launch(call, std::move(arguments), over_messages(shared_from_this(), &direct_reduce));
}

Work GlooCommunicator::all_reduce(at::Tensor tensor, Reduction op) {
  const Call call = check_all_reduce(tensor, op);
  Arguments arguments{.output = std::move(tensor), .op = op};
  if (op.commutative()) return launch(call, std::move(arguments), &gloo::all_reduce);
  return launch(call, std::move(arguments), over_messages(shared_from_this(), &direct_all_reduce));
}

Work GlooCommunicator::reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) {
  const Call call = check_reduce_scatter(*this, output, input, op, counts);
  return launch(call, {.output = std::move(output), .input = std::move(input), .op = op, .input_counts = counts.vec()},
                over_messages(shared_from_this(), &direct_reduce_scatter));
}

Work GlooCommunicator::all_gather(at::Tensor output, at::Tensor input, Counts counts) {
  const Call call = check_all_gather(*this, output, input, counts);
  return launch(call, {.output = std::move(output), .input = std::move(input), .input_counts = counts.vec()},
                &gloo::all_gather);
}

Work GlooCommunicator::gather(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const Call call = check_gather(*this, output, input, root, counts);
  return launch(call,
                {.output = std::move(output), .input = std::move(input), .root = root, .input_counts = counts.vec()},
                &gloo::gather);
}

Work GlooCommunicator::scatter(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const Call call = check_scatter(*this, output, input, root, counts);
  return launch(call,
                {.output = std::move(output), .input = std::move(input), .root = root, .input_counts = counts.vec()},
                &gloo::scatter);
}

Work GlooCommunicator::all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts) {
  const Call call = check_all_to_all(*this, output, input, output_counts, input_counts);
  if (!input_counts.empty() && output_counts[rank()] != input_counts[rank()]) {
    throw std::invalid_argument("all_to_all: " + std::to_string(input_counts[rank()]) + " elements to oneself, but " +
                                std::to_string(output_counts[rank()]) + " from oneself");
  }
  return launch(call,
                {.output = std::move(output),
                 .input = std::move(input),
                 .output_counts = output_counts.vec(),
                 .input_counts = input_counts.vec()},
                &gloo::all_to_all);
}

Work GlooCommunicator::send(at::Tensor tensor, int peer, int tag) {
  const Call call = check_send(*this, tensor, peer, tag);
  return messages_->send(std::move(tensor), call);
}

Work GlooCommunicator::recv(at::Tensor tensor, int peer, int tag) {
  const Call call = check_recv(*this, tensor, peer, tag);
  return messages_->recv(std::move(tensor), call);
}

Work GlooCommunicator::barrier(std::optional<Seconds> timeout) {
  const Call call{.op = Op::kBarrier};
  return queue_->launch(*record_, call, [self = shared_from_this(), call, timeout] {
    self->group_->collective(call, timeout, [](const Turn& turn) { gloo::barrier(turn); });
  });
}

// What a body throws by itself is its caller's, and says nothing about the group.
Work GlooCommunicator::run(const Call& call, std::function<void()> body) {
  return queue_->launch(*record_, call, [self = shared_from_this(), call, body = std::move(body)] {
    std::exception_ptr error;
    const auto guarded = [&] {
      try {
        body();
      } catch (const CommError&) {
        throw;
      } catch (...) {
        error = std::current_exception();
      }
    };
    self->group_->guard([&] { return describe(call); }, guarded);
    if (error) std::rethrow_exception(error);
  });
}

CommunicatorPtr GlooCommunicator::split(int color, int key) {
  CommunicatorPtr child;
  queue_
      ->launch(*record_, {.op = Op::kSplit},
               [&] { group_->guard([] { return std::string("split"); }, [&] { child = split_now(color, key); }); })
      .wait();
  return child;
}

CommunicatorPtr GlooCommunicator::split_now(int color, int key) {
  const auto members = members_of_color(*group_, color, key);
  const auto exchange = exchange_through(*group_, members);
  if (members.empty()) {
    exchange({});
    return nullptr;
  }
  const Member member{.group = name() + "/" + std::to_string(color),
                      .rank = static_cast<int>(std::ranges::find(members, rank()) - members.begin()),
                      .size = static_cast<int>(members.size()),
                      .timeout = group_->timeout()};
  auto transport = connect(member, group_->transport().device(), exchange);
  return std::make_shared<GlooCommunicator>(std::make_shared<Group>(member.group, std::move(transport)), queue_);
}

at::Tensor GlooCommunicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  if (!options.device().is_cpu()) throw std::invalid_argument("allocate: only memory of the CPU is moved here");
  const Call call{.elements = count_elements(sizes, options.dtype().itemsize()),
                  .op = Op::kAllocate,
                  .dtype = c10::typeMetaToScalarType(options.dtype())};
  at::Tensor memory;
  queue_->launch(*record_, call, [&] { memory = at::zeros(sizes, options); }).wait();
  return memory;
}

at::Tensor GlooCommunicator::allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) {
  refuse_shared_memory(*this);
  return allocate(sizes, options);
}

}  // namespace phalanx::gloo
