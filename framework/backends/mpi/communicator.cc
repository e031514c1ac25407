// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/communicator.h"

#include <sched.h>

#include <array>
#include <bit>
#include <chrono>
#include <climits>
#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "framework/backends/mpi/collectives.h"
#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/execution.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/backends/mpi/survivors.h"
#include "framework/backends/mpi/ulfm.h"
#include "framework/backends/mpi/vendor.h"
#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/collectives/direct.h"
#include "framework/comm/operations/dispatch.h"
#include "framework/comm/plain_memory.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

// An error breaks the group. Memory of the operation that MPI may still use is then kept until the process ends.
template <class Body>
void perform(Execution execution, const Body& body) {
  execution.group->throw_if_broken();
  const auto fail = [&](const CommError& error) {
    execution.group->fail(error);
    keep_until_exit(std::make_shared<Execution>(std::move(execution)));
  };
  try {
    body(execution);
  } catch (const CommError& error) {
    fail(error);
    throw;
  } catch (const std::exception& error) {
    fail(CommError(CommError::Kind::kSystem, execution.where() + ": " + error.what()));
    throw;
  }
}

// Returns true for operations in which MPI counts the elements of all parts together with an int.
bool is_counted_by_ints(Op op) {
  return op == Op::kReduceScatter || op == Op::kAllGather || op == Op::kGather || op == Op::kScatter;
}

// Adds the name of the operation to errors of messages, which name only the message.
void perform_over_messages(Communicator& communicator, const std::string& where, const Operation& operation) {
  try {
    run_directly(communicator, operation);
  } catch (const CommError& error) {
    throw CommError(error.kind(), where + ": " + error.what());
  }
}

}  // namespace

MpiCommunicator::MpiCommunicator(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue)
    : context_{.group = std::move(group), .queue = std::move(queue), .record = nullptr} {
  context_.record = context_.queue->recorder().add_group(name());
}

bool MpiCommunicator::is_supported_by_mpi(const Call& call) const {
  if (call.reduction == Reduction::Kind::kCustom) return false;
  return !is_counted_by_ints(call.op) || call.elements <= group().options().max_elements;
}

// Launches an operation that holds the group. Without ULFM, the other ranks would not learn that this one has left.
template <class Run>
Work MpiCommunicator::enqueue(const Call& call, Run run) {
  if (ulfm() == nullptr) return context_.queue->launch(*context_.record, call, std::move(run));
  const auto leave = [group = context_.group.get(), op = call.op] {
    group->fail(abandoned(std::string(to_string(op)) + " of " + group->options().name));
  };
  return context_.queue->launch(*context_.record, call, std::move(run), leave);
}

Work MpiCommunicator::launch(Operation operation) {
  const Call call = operation.call;
  if (call.op == Op::kSend || call.op == Op::kRecv) return launch_message(std::move(operation.output), call);
  const auto sequence = group().next_sequence();
  if (!is_supported_by_mpi(call)) {
    return enqueue(call, [self = shared_from_this(), sequence, operation = std::move(operation)] {
      perform_over_messages(*self, self->group().where(operation.call.op, sequence), operation);
    });
  }
  return enqueue(call, [group = context_.group, sequence, operation = std::move(operation)]() mutable {
    const auto timeout = operation.timeout.value_or(group->options().timeout);
    perform({std::move(group), std::move(operation), sequence, timeout},
            [](Execution& execution) { dispatch_collective(execution.operation.call.op, Collectives{execution}); });
  });
}

Work MpiCommunicator::launch_message(at::Tensor tensor, const Call& call) {
  auto message = std::make_shared<Message>(context_, std::move(tensor), call);
  if (call.op == Op::kSend) {
    message->send();
  } else {
    message->receive();
  }
  return Work(std::move(message));
}

Work MpiCommunicator::run(const Call& call, std::function<void()> body) {
  group().next_sequence();
  return enqueue(call, [self = shared_from_this(), body = std::move(body)] {
    self->group().throw_if_broken();  // the body may use other groups only
    body();
  });
}

// MPI_Comm_split has no timeout. After a barrier it needs none, since all ranks are about to call it.
CommunicatorPtr MpiCommunicator::split(int color, int key) {
  const Operation operation{.call = {.op = Op::kSplit}};
  const auto sequence = group().next_sequence();
  std::shared_ptr<Group> part;
  const auto divide = [&](Execution& execution) {
    MPI_Comm child = MPI_COMM_NULL;
    Collectives{execution}.barrier();
    execution.expect_success(MPI_Comm_split(group().comm(), color < 0 ? MPI_UNDEFINED : color, key, &child));
    if (child == MPI_COMM_NULL) return;
    part = group().derive(child, name() + "/" + std::to_string(color));
    if (ulfm() != nullptr) await_living_ranks(*part, execution.where());
  };
  const auto run = [&] { perform({context_.group, operation, sequence, group().options().timeout}, divide); };
  context_.queue->launch(*context_.record, operation.call, run).wait();
  return part ? std::make_shared<MpiCommunicator>(std::move(part), context_.queue) : nullptr;
}

CommunicatorPtr MpiCommunicator::do_shrink() {
  const Call call{.op = Op::kShrink};
  const auto sequence = group().next_sequence();
  std::shared_ptr<Group> survivors;
  context_.queue->launch(*context_.record, call, [&] { survivors = form_survivors(group(), sequence); }).wait();
  return std::make_shared<MpiCommunicator>(std::move(survivors), context_.queue);
}

std::string MpiCommunicator::why_no_shrink() const {
  if (ulfm() != nullptr) return "";
  return "backend mpi cannot form a group of the ranks that are left (shrink): " + why_no_ulfm();
}

at::Tensor MpiCommunicator::do_allocate(const Allocation& allocation) {
  if (allocation.shared()) require_shared_memory(*this);
  auto& recorder = context_.queue->recorder();
  group().next_sequence();
  const auto ticket = recorder.launched(*context_.record, allocation.call);
  recorder.started(ticket);
  at::Tensor memory = plain_memory(*this, allocation);
  recorder.finished(ticket, true);
  return memory;
}

namespace {

// Returns the number of cores that the ranks of this host may use together: the union of the cores of each rank.
// Collective.
int cores_of_host(MPI_Comm world) {
  std::array<unsigned char, CPU_SETSIZE / CHAR_BIT> cores{};
  for (const int core : allowed_cores()) cores[core / CHAR_BIT] |= static_cast<unsigned char>(1U << core % CHAR_BIT);
  MPI_Comm host = MPI_COMM_NULL;
  check(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  check(MPI_Allreduce(MPI_IN_PLACE, cores.data(), static_cast<int>(cores.size()), MPI_BYTE, MPI_BOR, host),
        "MPI_Allreduce");
  check(MPI_Comm_free(&host), "MPI_Comm_free");
  return std::transform_reduce(cores.begin(), cores.end(), 0, std::plus(),
                               [](auto byte) { return std::popcount(byte); });
}

}  // namespace

std::shared_ptr<Group> duplicate(MPI_Comm communicator, Group::Options options) {
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
    check(MPI_Comm_idup(communicator, &pending->comm, &pending->request), "MPI_Comm_idup");
    shared_memory::Waiter(options.local_ranks, options.local_cores).wait(complete, [&](auto waited) {
      if (waited < options.timeout) return;
      throw CommError(CommError::Kind::kTimeout, "connecting " + options.name + ": not all ranks connected in time");
    });
    check(MPI_Comm_set_errhandler(pending->comm, errors_return()), "MPI_Comm_set_errhandler");
    options.local_cores = cores_of_host(pending->comm);  // does not block: all ranks are here
  } catch (...) {
    static_cast<void>(pending.release());  // MPI may still write to it
    mark_unhealthy();
    throw;
  }
  return std::make_shared<Group>(pending->comm, std::move(options), std::make_shared<Inbox>());
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
