#include "framework/backends/mpi/communicator.h"

#include <ATen/ops/zeros.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "framework/backends/mpi/collectives.h"
#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/base/error.h"
#include "framework/collectives/direct.h"
#include "framework/comm/arguments.h"
#include "framework/comm/shared_memory.h"

namespace phalanx::mpi {
namespace {

// What fails breaks the group, and what MPI may still use of the operation stays for good.
template <class Body>
void perform(Operation operation, const Body& body) {
  if (operation.group->broken()) throw Group::lost(operation.where());
  const auto fail = [&](CommError::Kind kind) {
    operation.group->fail(kind);
    keep_for_good(std::make_shared<Operation>(std::move(operation)));
  };
  try {
    body(operation);
  } catch (const CommError& error) {
    fail(error.kind());
    throw;
  } catch (...) {
    fail(CommError::Kind::kSystem);
    throw;
  }
}

std::int64_t count_bytes(at::IntArrayRef sizes, std::int64_t bytes) {
  for (const auto size : sizes) {
    if (size < 0) throw std::invalid_argument("allocate: negative size");
    if (__builtin_mul_overflow(bytes, size, &bytes)) {
      throw std::invalid_argument("allocate: more bytes than an address can count");
    }
  }
  return bytes;
}

}  // namespace

MpiCommunicator::MpiCommunicator(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue)
    : postbox_{.group = std::move(group), .queue = std::move(queue), .record = nullptr} {
  postbox_.record = postbox_.queue->recorder().add_group(name());
}

bool MpiCommunicator::can_by_mpi(const Call& call) const {
  if (call.reduction == Reduction::Kind::kCustom) return false;
  const bool in_several_calls = call.op == Op::kReduce || call.op == Op::kAllReduce;
  return in_several_calls || call.elements <= group().options().most_elements;
}

Work MpiCommunicator::launch(const Call& call, Arguments arguments, ByMpi by_mpi, Directly directly) {
  if (directly != nullptr && !can_by_mpi(call)) return launch_directly(call, std::move(arguments), directly);
  return postbox_.queue->launch(*postbox_.record, call,
                                [group = postbox_.group, call, sequence = group().next_sequence(),
                                 arguments = std::move(arguments), by_mpi]() mutable {
                                  const auto timeout = group->options().timeout;
                                  perform({std::move(group), call, sequence, timeout, std::move(arguments)}, by_mpi);
                                });
}

// Its messages say what went wrong, but not what for.
Work MpiCommunicator::launch_directly(const Call& call, Arguments arguments, Directly directly) {
  return postbox_.queue->launch(*postbox_.record, call,
                                [self = shared_from_this(), call, sequence = group().next_sequence(),
                                 arguments = std::move(arguments), directly] {
                                  try {
                                    directly(*self, arguments);
                                  } catch (const CommError& error) {
                                    throw CommError(error.kind(),
                                                    self->group().where(call.op, sequence) + ": " + error.what());
                                  }
                                });
}

Work MpiCommunicator::broadcast(at::Tensor tensor, int root) {
  const Call call = check_broadcast(*this, tensor, root);
  return launch(call, {.output = std::move(tensor), .root = root}, &mpi::broadcast);
}

Work MpiCommunicator::reduce(at::Tensor tensor, Reduction op, int root) {
  const Call call = check_reduce(*this, tensor, op, root);
  return launch(call, {.output = std::move(tensor), .op = std::move(op), .root = root}, &mpi::reduce, &direct_reduce);
}

Work MpiCommunicator::all_reduce(at::Tensor tensor, Reduction op) {
  const Call call = check_all_reduce(tensor, op);
  return launch(call, {.output = std::move(tensor), .op = std::move(op)}, &mpi::all_reduce, &direct_all_reduce);
}

Work MpiCommunicator::reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) {
  const Call call = check_reduce_scatter(*this, output, input, op, counts);
  return launch(
      call, {.output = std::move(output), .input = std::move(input), .op = std::move(op), .input_counts = counts.vec()},
      &mpi::reduce_scatter, &direct_reduce_scatter);
}

Work MpiCommunicator::all_gather(at::Tensor output, at::Tensor input, Counts counts) {
  const Call call = check_all_gather(*this, output, input, counts);
  return launch(call, {.output = std::move(output), .input = std::move(input), .input_counts = counts.vec()},
                &mpi::all_gather, &direct_all_gather);
}

Work MpiCommunicator::gather(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const Call call = check_gather(*this, output, input, root, counts);
  return launch(call,
                {.output = std::move(output), .input = std::move(input), .root = root, .input_counts = counts.vec()},
                &mpi::gather, &direct_gather);
}

Work MpiCommunicator::scatter(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const Call call = check_scatter(*this, output, input, root, counts);
  return launch(call,
                {.output = std::move(output), .input = std::move(input), .root = root, .input_counts = counts.vec()},
                &mpi::scatter, &direct_scatter);
}

Work MpiCommunicator::all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts) {
  const Call call = check_all_to_all(*this, output, input, output_counts, input_counts);
  return launch(call,
                {.output = std::move(output),
                 .input = std::move(input),
                 .output_counts = output_counts.vec(),
                 .input_counts = input_counts.vec()},
                &mpi::all_to_all);
}

Work MpiCommunicator::send(at::Tensor tensor, int peer, int tag) {
  const Call call = check_send(*this, tensor, peer, tag);
  auto message = std::make_shared<Message>(postbox_, std::move(tensor), call);
  message->send();
  return Work(std::move(message));
}

Work MpiCommunicator::recv(at::Tensor tensor, int peer, int tag) {
  const Call call = check_recv(*this, tensor, peer, tag);
  auto message = std::make_shared<Message>(postbox_, std::move(tensor), call);
  message->receive();
  return Work(std::move(message));
}

Work MpiCommunicator::barrier(std::optional<Seconds> timeout) {
  const Call call{.op = Op::kBarrier};
  return postbox_.queue->launch(*postbox_.record, call,
                                [group = postbox_.group, call, sequence = group().next_sequence(), timeout] {
                                  const auto patience = timeout.value_or(group->options().timeout);
                                  perform({group, call, sequence, patience}, &mpi::barrier);
                                });
}

Work MpiCommunicator::run(const Call& call, std::function<void()> body) {
  group().next_sequence();
  return postbox_.queue->launch(*postbox_.record, call,
                                [self = shared_from_this(), body = std::move(body)] { body(); });
}

// MPI_Comm_split has no deadline. Behind a barrier it needs none, since all ranks are about to call it.
CommunicatorPtr MpiCommunicator::split(int color, int key) {
  const Call call{.op = Op::kSplit};
  const auto sequence = group().next_sequence();
  MPI_Comm child = MPI_COMM_NULL;
  const auto divide = [&](Operation& operation) {
    mpi::barrier(operation);
    operation.expect_success(MPI_Comm_split(group().comm(), color < 0 ? MPI_UNDEFINED : color, key, &child));
  };
  const auto run = [&] { perform({postbox_.group, call, sequence, group().options().timeout}, divide); };
  postbox_.queue->launch(*postbox_.record, call, run).wait();
  if (child == MPI_COMM_NULL) return nullptr;
  auto options = group().options();
  options.name += "/" + std::to_string(color);
  auto part = std::make_shared<Group>(child, std::move(options), group().inbox());
  return std::make_shared<MpiCommunicator>(std::move(part), postbox_.queue);
}

at::Tensor MpiCommunicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  if (!options.device().is_cpu()) throw std::invalid_argument("allocate: only memory of the CPU is moved here");
  const auto bytes = count_bytes(sizes, static_cast<std::int64_t>(options.dtype().itemsize()));
  auto& recorder = postbox_.queue->recorder();
  group().next_sequence();
  const auto ticket = recorder.launched(*postbox_.record, {.elements = bytes, .op = Op::kAllocate});
  recorder.started(ticket);
  at::Tensor memory = at::zeros(sizes, options);
  recorder.finished(ticket, true);
  return memory;
}

at::Tensor MpiCommunicator::allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) {
  refuse_shared_memory(*this);
  return allocate(sizes, options);
}

std::shared_ptr<Group> duplicate_world(Group::Options options) {
  struct Pending {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  auto pending = std::make_unique<Pending>();
  const auto complete = [&] {
    int flag = 0;
    check(MPI_Test(&pending->request, &flag, MPI_STATUS_IGNORE), "MPI_Comm_idup");
    return flag != 0;
  };
  try {
    check(MPI_Comm_idup(MPI_COMM_WORLD, &pending->comm, &pending->request), "MPI_Comm_idup");
    direct::Waiter(options.local_ranks).wait(complete, [&](auto waited) {
      if (waited < options.timeout) return;
      throw CommError(CommError::Kind::kTimeout, "connecting " + options.name + ": not all ranks came in time");
    });
    check(MPI_Comm_set_errhandler(pending->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  } catch (...) {
    static_cast<void>(pending.release());  // MPI may still write to it
    give_up();
    throw;
  }
  return std::make_shared<Group>(pending->comm, std::move(options), std::make_shared<Inbox>());
}

}  // namespace phalanx::mpi
