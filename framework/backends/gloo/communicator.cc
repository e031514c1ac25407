// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/communicator.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "framework/backends/gloo/collectives.h"
#include "framework/backends/gloo/connect.h"
#include "framework/backends/gloo/split.h"
#include "framework/backends/gloo/survivors.h"
#include "framework/base/error.h"
#include "framework/collectives/direct.h"
#include "framework/comm/operations/dispatch.h"
#include "framework/comm/plain_memory.h"

namespace phalanx::gloo {
namespace {

// Performs an operation of a group with Gloo. Operations that Gloo does not support or performs slowly use messages,
// and throw the errors of messages.
struct Collectives {
  const CollectiveCall& collective;
  const Operation& operation;
  Communicator& group;

  void broadcast() const { gloo::broadcast(collective, operation); }
  void reduce() const {
    if (!operation.reduction.commutative() || operation.output.nbytes() <= kDirectReduceBytes) return use_messages();
    gloo::reduce(collective, operation);
  }
  void all_reduce() const {
    if (reduces_at_once(operation.output.nbytes(), collective.context->size)) {
      return gloo::all_reduce_at_once(collective, operation);
    }
    if (!operation.reduction.commutative()) return use_messages();
    gloo::all_reduce(collective, operation);
  }
  void reduce_scatter() const { use_messages(); }
  void all_gather() const { gloo::all_gather(collective, operation); }
  void gather() const { gloo::gather(collective, operation); }
  void scatter() const { gloo::scatter(collective, operation); }
  void all_to_all() const { gloo::all_to_all(collective, operation); }
  void barrier() const { gloo::barrier(collective); }

  void use_messages() const { run_directly(group, operation); }
};

}  // namespace

GlooCommunicator::GlooCommunicator(std::shared_ptr<Group> group, std::shared_ptr<OperationQueue> queue)
    : group_(std::move(group)),
      queue_(std::move(queue)),
      record_(queue_->recorder().add_group(group_->name())),
      messages_(std::make_shared<Messages>(group_, queue_, record_)) {}

// Launches an operation that holds this object.
template <class Run>
Work GlooCommunicator::enqueue(const Call& call, Run run) {
  return queue_->launch(*record_, call, std::move(run), [this, op = call.op] {
    group_->abandon(abandoned(std::string(to_string(op)) + " of " + group_->describe()).what());
  });
}

Work GlooCommunicator::launch(Operation operation) {
  const Call call = operation.call;
  if (call.op == Op::kSend) return messages_->send(std::move(operation.output), call);
  if (call.op == Op::kRecv) return messages_->recv(std::move(operation.output), call);
  return enqueue(call, [self = shared_from_this(), operation = std::move(operation)] { self->execute(operation); });
}

void GlooCommunicator::execute(const Operation& operation) {
  group_->collective(operation.call, operation.timeout, [&](const CollectiveCall& collective) {
    dispatch_collective(operation.call.op, Collectives{collective, operation, *this});
  });
}

// Exceptions of the body other than CommError are passed on to the caller and do not break the group.
Work GlooCommunicator::run(const Call& call, std::function<void()> body) {
  return enqueue(call, [self = shared_from_this(), call, body = std::move(body)] {
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
    exchange("");
    return nullptr;
  }
  std::vector<int> numbers;
  for (const int one : members) numbers.push_back(group_->transport().standing().number_of(one));
  const Member member{.group = name() + "/" + std::to_string(color),
                      .rank = static_cast<int>(std::ranges::find(members, rank()) - members.begin()),
                      .size = static_cast<int>(members.size()),
                      .timeout = group_->timeout(),
                      .endpoint = group_->transport().endpoint(),
                      .numbers = std::move(numbers),
                      .check = [&] { throw_if_lost(*group_, members); },
                      .lasting_check = group_->transport().check()};
  auto transport = connect(member, group_->transport().device(), exchange);
  return std::make_shared<GlooCommunicator>(std::make_shared<Group>(member.group, std::move(transport)), queue_);
}

CommunicatorPtr GlooCommunicator::do_shrink() {
  CommunicatorPtr survivors;
  queue_
      ->launch(*record_, {.op = Op::kShrink},
               [&] {
                 auto group = std::make_shared<Group>(name() + "/survivors", connect_survivors(*group_));
                 survivors = std::make_shared<GlooCommunicator>(std::move(group), queue_);
               })
      .wait();
  return survivors;
}

at::Tensor GlooCommunicator::do_allocate(const Allocation& allocation) {
  at::Tensor memory;
  queue_->launch(*record_, allocation.call, [&] { memory = plain_memory(*this, allocation); }).wait();
  return memory;
}

}  // namespace phalanx::gloo
