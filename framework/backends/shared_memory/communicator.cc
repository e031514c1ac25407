// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/communicator.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "framework/backends/shared_memory/all_messages.h"
#include "framework/backends/shared_memory/cores_of_ranks.h"
#include "framework/backends/shared_memory/keep_until_exit.h"
#include "framework/backends/shared_memory/survivors.h"
#include "framework/base/error.h"

namespace phalanx::shared_memory {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t bytes) { return std::max(kPage, (bytes + kPage - 1) / kPage * kPage); }

template <class T>
std::vector<T> exchange_values(Group& group, const Call& call, const T& mine) {
  std::vector<T> all(group.size());
  exchange(group, call, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

CommunicatorPtr make_communicator(Group::Options options, std::shared_ptr<void> control, std::unique_ptr<Fabric> fabric,
                                  std::shared_ptr<Rank> rank) {
  auto group = std::make_unique<Group>(std::move(options), std::move(control), std::move(fabric),
                                       [messages = rank->messages] { messages->poll(); });
  return std::make_shared<SharedMemoryCommunicator>(std::move(group), std::move(rank));
}

struct SplitRequest {  // the color and key of one rank in a split
  std::int32_t color = 0, key = 0;
};

// Returns the ranks of `color` in their new order.
std::vector<int> members_of(const std::vector<SplitRequest>& requests, int color) {
  std::vector<int> members;
  for (int rank = 0; rank < static_cast<int>(requests.size()); ++rank) {
    if (requests[rank].color == color) members.push_back(rank);
  }
  std::ranges::stable_sort(members, {}, [&](int rank) { return requests[rank].key; });
  return members;
}

}  // namespace

SharedMemoryCommunicator::SharedMemoryCommunicator(std::unique_ptr<Group> group, std::shared_ptr<Rank> rank)
    : group_(std::move(group)),
      rank_(std::move(rank)),
      records_(rank_->queue.recorder().add_group(group_->name())),
      messages_(std::make_shared<Messages>(*group_)) {
  rank_->messages->add(messages_);
}

SharedMemoryCommunicator::~SharedMemoryCommunicator() = default;

// Breaks the group after an error that may differ between ranks, so that peers do not wait for the rest of this
// operation.
template <class Run>
void SharedMemoryCommunicator::run_guarded(const Run& run) {
  try {
    run();
  } catch (const CommError& error) {
    if (error.kind() != CommError::Kind::kMismatch) group_->fail(error);
    throw;
  } catch (const std::exception& error) {
    group_->fail(CommError(CommError::Kind::kSystem, error.what()));
    throw;
  }
}

bool SharedMemoryCommunicator::offers(NativeWay way) const {
  switch (way) {
    case NativeWay::kDefault:
      return true;
    case NativeWay::kKernelCopy:
      return group_->fabric().fetches();
    case NativeWay::kOneShot:
    case NativeWay::kTwoShot:
      return !group_->fabric().reaches_everything();
  }
  return false;
}

// Launches an operation that holds this object.
template <class Run>
Work SharedMemoryCommunicator::enqueue(const Call& call, Run run) {
  return rank_->queue.launch(*records_, call, std::move(run), [this, op = call.op] {
    group_->fail_between_calls(abandoned(std::string(to_string(op)) + " of " + name()));
  });
}

Work SharedMemoryCommunicator::launch(Operation operation) {
  const Call call = operation.call;
  if (call.op == Op::kSend || call.op == Op::kRecv) return launch_message(std::move(operation.output), call);
  return enqueue(call, [self = shared_from_this(), operation = std::move(operation)] { self->execute(operation); });
}

void SharedMemoryCommunicator::execute(const Operation& operation) {
  group_->throw_if_broken();
  Call call = operation.call;
  call.tag = static_cast<std::int32_t>(operation.way);  // so that ranks compare it
  try {
    run_guarded([&] { shared_memory::execute({*group_, *this, call, operation.way}, operation); });
    if (auto mismatch = group_->take_late_mismatch()) throw *std::move(mismatch);
  } catch (...) {
    if (group_->broken() && group_->fabric().reaches_everything()) {
      keep_until_exit(operation.output);
      keep_until_exit(operation.input);
    }
    throw;
  }
}

Work SharedMemoryCommunicator::launch_message(at::Tensor tensor, const Call& call) {
  auto transfer = std::make_shared<Transfer>(std::move(tensor), call, shared_from_this());
  transfer->recorder = &rank_->queue.recorder();
  transfer->ticket = transfer->recorder->launched(*records_, call);
  if (call.op == Op::kSend) {
    messages_->send(transfer);
  } else {
    messages_->recv(transfer);
  }
  return Work(std::move(transfer));
}

void SharedMemoryCommunicator::await(Transfer& transfer) {
  messages_->await(transfer, [this] { rank_->messages->poll(); });
}

Work SharedMemoryCommunicator::run(const Call& call, std::function<void()> body) {
  return enqueue(call, [self = shared_from_this(), body = std::move(body)] {
    self->group_->throw_if_broken();  // the body may use other groups only
    body();
  });
}

template <class Run>
void SharedMemoryCommunicator::run_in_order(const Call& call, const Run& run) {
  rank_->queue.launch(*records_, call, [this, &run] { run_guarded(run); }).wait();
}

CommunicatorPtr SharedMemoryCommunicator::split(int color, int key) {
  CommunicatorPtr child;
  run_in_order({.op = Op::kSplit}, [&] { child = split_now(color, key); });
  return child;
}

CommunicatorPtr SharedMemoryCommunicator::split_now(int color, int key) {
  const auto requests = exchange_values(*group_, {.op = Op::kSplit}, SplitRequest{color, key});
  const auto members = members_of(requests, color);
  const bool takes_part = color >= 0;
  std::optional<Fabric::Block> made;
  if (takes_part && members.front() == rank()) made = group_->fabric().create(ControlBlock::bytes(members.size()));
  const auto handles =
      exchange_values(*group_, {.detail = 1, .op = Op::kSplit}, made ? made->handle : Fabric::Handle{});

  std::shared_ptr<void> control;
  if (made) {
    control = made->memory;
  } else if (takes_part) {
    control = group_->fabric().open(handles[members.front()]);
  }
  shared_memory::barrier(*group_);
  group_->fabric().release();
  if (!takes_part) return nullptr;

  return make_subgroup(name() + "/" + std::to_string(color), members, std::move(control));
}

CommunicatorPtr SharedMemoryCommunicator::do_shrink() {
  CommunicatorPtr child;
  rank_->queue
      .launch(*records_, {.op = Op::kShrink},
              [&] {
                auto [members, control] = agree_on_survivors(*group_, [this] { rank_->messages->poll(); });
                child = make_subgroup(name() + "/survivors", members, std::move(control));
              })
      .wait();
  return child;
}

// `members` are ranks of this group, in the order of the new group.
CommunicatorPtr SharedMemoryCommunicator::make_subgroup(const std::string& name, const std::vector<int>& members,
                                                        std::shared_ptr<void> control) {
  Group::Options options = group_->options();
  options.name = name;
  options.rank = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  options.size = static_cast<int>(members.size());
  return make_communicator(std::move(options), std::move(control), group_->fabric().subset(members), rank_);
}

at::Tensor SharedMemoryCommunicator::do_allocate(const Allocation& allocation) {
  std::shared_ptr<void> memory;
  run_in_order(allocation.call, [&] { memory = allocate_now(allocation); });
  return at::from_blob(memory.get(), allocation.sizes, [memory](void*) {}, allocation.options);
}

// Allocates one block: a part for each rank, or one part for all ranks.
std::shared_ptr<void> SharedMemoryCommunicator::allocate_now(const Allocation& allocation) {
  const bool shared = allocation.shared();
  const std::size_t stride = round_up(allocation.bytes());
  auto& fabric = group_->fabric();
  std::optional<Fabric::Block> made;
  if (rank() == 0) made = fabric.create(shared ? stride : stride * size());
  const auto handle = exchange_values(*group_, allocation.call, made ? made->handle : Fabric::Handle{})[0];
  auto mapping = made ? made->memory : fabric.open(handle);
  // Each user reserves its own part, so that the memory is close to it.
  if (!shared || rank() == 0) fabric.reserve(handle, shared ? 0 : stride * rank(), stride);
  shared_memory::barrier(*group_);
  fabric.release();
  if (shared) return mapping;
  const Regions::Region region{++last_region_, static_cast<std::byte*>(mapping.get()), stride};
  return Regions::add(regions_, region, rank(), std::move(mapping));
}

Location SharedMemoryCommunicator::locate(const void* begin, std::size_t bytes) const {
  const bool reached = size() == 1 || group_->fabric().reaches_everything();
  if (reached) return {reinterpret_cast<std::uint64_t>(begin), kEverywhere};
  return regions_->locate(begin, bytes);
}

// If all posts lie in one region, every rank knows the region, because its own post lies there, too. All ranks look at
// the same posts, so they get the same answer.
Addresses SharedMemoryCommunicator::addresses(const Group& group, Location Post::* which) const {
  const std::uint32_t id = (group.post_of(0).*which).region;
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::uint32_t theirs = (group.post_of(rank).*which).region;
    if (theirs == 0 || theirs != id || is_ring(group.post_of(rank).*which)) return {};
  }
  const bool is_address = id == kEverywhere || id == kFetched;
  const auto region = is_address ? Regions::Region{} : regions_->find(id);
  Addresses all;
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::uint64_t offset = (group.post_of(rank).*which).offset;
    all.push_back(is_address ? reinterpret_cast<std::byte*>(offset) : region.base + region.stride * rank + offset);
  }
  return all;
}

CommunicatorPtr connect(const std::string& backend, const ConnectOptions& options, std::unique_ptr<Fabric> fabric) {
  const auto& rank_info = options.rank_info;
  const auto& store = options.store;
  const std::string key = backend + "/control";
  std::shared_ptr<void> control;
  if (rank_info.rank == 0) {
    auto made = fabric->create(ControlBlock::bytes(rank_info.size));
    control = made.memory;
    std::ostringstream text;
    text << made.handle.owner << ' ' << made.handle.token << ' ' << made.handle.bytes << ' ' << made.handle.cookie;
    store->set(key, text.str());
  } else {
    Fabric::Handle handle;
    std::istringstream(store->get(key)) >> handle.owner >> handle.token >> handle.bytes >> handle.cookie;
    control = fabric->open(handle);
  }
  store_barrier(*store, backend + "/connected", rank_info.size);
  fabric->release();
  auto rank = std::make_shared<Rank>();
  rank->messages = std::make_shared<AllMessages>();
  if (wants_progress_thread(options)) rank->queue.start_progress_thread();
  Group::Options world{.name = "world",
                       .rank = rank_info.rank,
                       .size = rank_info.size,
                       .timeout = options.timeout,
                       .local_ranks = rank_info.size,
                       .local_cores = cores_of_ranks(*store, backend + "/cores", rank_info.rank, rank_info.size),
                       .check = options.check};
  return make_communicator(std::move(world), std::move(control), std::move(fabric), std::move(rank));
}

}  // namespace phalanx::shared_memory
