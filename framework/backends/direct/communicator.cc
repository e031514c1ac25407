#include "framework/backends/direct/communicator.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "framework/backends/direct/all_messages.h"
#include "framework/backends/direct/keep_for_good.h"
#include "framework/base/error.h"
#include "framework/comm/arguments.h"
#include "framework/comm/part_layout.h"

namespace phalanx::direct {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t bytes) { return std::max(kPage, (bytes + kPage - 1) / kPage * kPage); }

Elements run_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.numel(), tensor.scalar_type()};
}

template <class T>
std::vector<T> exchange_values(Group& group, const Call& call, const T& mine) {
  std::vector<T> all(group.size());
  exchange(group, call, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

// Throws unless an allocation of this many bytes, for each of `ranks`, can be counted.
std::size_t count_bytes(at::IntArrayRef sizes, std::size_t item, int ranks) {
  std::size_t bytes = item, all = 0;
  for (const auto size : sizes) {
    if (size < 0) throw std::invalid_argument("allocate: negative size");
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes)) bytes = SIZE_MAX / 2;
  }
  if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(ranks), &all) || all > SIZE_MAX / 4) {
    throw std::invalid_argument("allocate: more bytes than an address can count");
  }
  return bytes;
}

CommunicatorPtr make_communicator(Group::Options options, std::shared_ptr<void> control, std::unique_ptr<Fabric> fabric,
                                  std::shared_ptr<Rank> rank) {
  auto group = std::make_unique<Group>(std::move(options), std::move(control), std::move(fabric),
                                       [messages = rank->messages] { messages->poll(); });
  return std::make_shared<DirectCommunicator>(std::move(group), std::move(rank));
}

struct Wish {  // of one rank in a split
  std::int32_t color = 0, key = 0;
};

// The ranks of `color` in their new order.
std::vector<int> members_of(const std::vector<Wish>& wishes, int color) {
  std::vector<int> members;
  for (int rank = 0; rank < static_cast<int>(wishes.size()); ++rank) {
    if (wishes[rank].color == color) members.push_back(rank);
  }
  std::ranges::stable_sort(members, {}, [&](int rank) { return wishes[rank].key; });
  return members;
}

}  // namespace

DirectCommunicator::DirectCommunicator(std::unique_ptr<Group> group, std::shared_ptr<Rank> rank)
    : group_(std::move(group)),
      rank_(std::move(rank)),
      records_(rank_->queue.recorder().add_group(group_->name())),
      messages_(std::make_shared<Messages>(*group_)) {
  rank_->messages->add(messages_);
}

DirectCommunicator::~DirectCommunicator() = default;

// After an error that not all ranks see alike, peers would wait for what this rank leaves undone.
template <class Run>
void DirectCommunicator::run_guarded(const Run& run) {
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

// `run` gets the operation and the runs of output and input.
template <class Run>
Work DirectCommunicator::launch(const Call& call, at::Tensor output, at::Tensor input, Run run) {
  return rank_->queue.launch(
      *records_, call,
      [self = shared_from_this(), call, output = std::move(output), input = std::move(input), run = std::move(run)] {
        self->group_->throw_if_broken();
        try {
          const Operation operation{*self->group_, *self, call};
          self->run_guarded([&] { run(operation, run_of(output), run_of(input)); });
        } catch (...) {
          if (self->group_->broken() && self->group_->fabric().reaches_everything()) {
            keep_for_good(output);
            keep_for_good(input);
          }
          throw;
        }
      });
}

Work DirectCommunicator::broadcast(at::Tensor tensor, int root) {
  const auto call = check_broadcast(*this, tensor, root);
  return launch(call, std::move(tensor), {}, [root](const Operation& operation, Elements elements, Elements) {
    direct::broadcast(operation, elements, root);
  });
}

Work DirectCommunicator::reduce(at::Tensor tensor, Reduction op, int root) {
  const auto call = check_reduce(*this, tensor, op, root);
  return launch(call, std::move(tensor), {},
                [op = std::move(op), root](const Operation& operation, Elements elements, Elements) {
                  direct::reduce(operation, elements, op, root);
                });
}

Work DirectCommunicator::all_reduce(at::Tensor tensor, Reduction op) {
  const auto call = check_all_reduce(tensor, op);
  return launch(call, std::move(tensor), {},
                [op = std::move(op)](const Operation& operation, Elements elements, Elements) {
                  direct::all_reduce(operation, elements, op);
                });
}

Work DirectCommunicator::reduce_scatter(at::Tensor output, at::Tensor input, Reduction op, Counts counts) {
  const auto call = check_reduce_scatter(*this, output, input, op, counts);
  const PartLayout parts(counts, size(), input.numel());
  return launch(call, std::move(output), std::move(input),
                [op = std::move(op), parts](const Operation& operation, Elements to, Elements from) {
                  direct::reduce_scatter(operation, to, from, parts, op);
                });
}

Work DirectCommunicator::all_gather(at::Tensor output, at::Tensor input, Counts counts) {
  const auto call = check_all_gather(*this, output, input, counts);
  const PartLayout parts(counts, size(), output.numel());
  return launch(call, std::move(output), std::move(input),
                [parts](const Operation& operation, Elements to, Elements from) {
                  direct::all_gather(operation, to, from, parts);
                });
}

Work DirectCommunicator::gather(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const auto call = check_gather(*this, output, input, root, counts);
  const PartLayout parts(counts, size(), call.elements);
  return launch(call, std::move(output), std::move(input),
                [parts, root](const Operation& operation, Elements to, Elements from) {
                  direct::gather(operation, to, from, parts, root);
                });
}

Work DirectCommunicator::scatter(at::Tensor output, at::Tensor input, int root, Counts counts) {
  const auto call = check_scatter(*this, output, input, root, counts);
  const PartLayout parts(counts, size(), call.elements);
  return launch(call, std::move(output), std::move(input),
                [parts, root](const Operation& operation, Elements to, Elements from) {
                  direct::scatter(operation, to, from, parts, root);
                });
}

Work DirectCommunicator::all_to_all(at::Tensor output, at::Tensor input, Counts output_counts, Counts input_counts) {
  const auto call = check_all_to_all(*this, output, input, output_counts, input_counts);
  const PartLayout from(output_counts, size(), output.numel()), to(input_counts, size(), input.numel());
  return launch(call, std::move(output), std::move(input),
                [from, to](const Operation& operation, Elements received, Elements sent) {
                  direct::all_to_all(operation, received, sent, from, to);
                });
}

std::shared_ptr<Transfer> DirectCommunicator::transfer(at::Tensor tensor, const Call& call) {
  auto transfer = std::make_shared<Transfer>(std::move(tensor), call);
  transfer->recorder = &rank_->queue.recorder();
  transfer->ticket = transfer->recorder->launched(*records_, call);
  transfer->set_await([self = shared_from_this()](Transfer& one) {
    self->messages_->await(one, [&] { self->rank_->messages->poll(); });
  });
  return transfer;
}

Work DirectCommunicator::send(at::Tensor tensor, int peer, int tag) {
  const auto call = check_send(*this, tensor, peer, tag);
  auto sent = transfer(std::move(tensor), call);
  messages_->send(sent);
  return Work(std::move(sent));
}

Work DirectCommunicator::recv(at::Tensor tensor, int peer, int tag) {
  const auto call = check_recv(*this, tensor, peer, tag);
  auto received = transfer(std::move(tensor), call);
  messages_->recv(received);
  return Work(std::move(received));
}

Work DirectCommunicator::barrier(std::optional<Seconds> timeout) {
  return rank_->queue.launch(*records_, {.op = Op::kBarrier},
                             [self = shared_from_this(), timeout] { direct::barrier(*self->group_, timeout); });
}

Work DirectCommunicator::run(const Call& call, std::function<void()> body) {
  return rank_->queue.launch(*records_, call, [self = shared_from_this(), body = std::move(body)] { body(); });
}

template <class Run>
void DirectCommunicator::run_in_order(const Call& call, const Run& run) {
  rank_->queue.launch(*records_, call, [this, &run] { run_guarded(run); }).wait();
}

CommunicatorPtr DirectCommunicator::split(int color, int key) {
  CommunicatorPtr child;
  run_in_order({.op = Op::kSplit}, [&] { child = split_now(color, key); });
  return child;
}

CommunicatorPtr DirectCommunicator::split_now(int color, int key) {
  const auto wishes = exchange_values(*group_, {.op = Op::kSplit}, Wish{color, key});
  const auto members = members_of(wishes, color);
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
  direct::barrier(*group_);
  group_->fabric().release();
  if (!takes_part) return nullptr;

  const int new_rank = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  Group::Options options{.name = name() + "/" + std::to_string(color),
                         .rank = new_rank,
                         .size = static_cast<int>(members.size()),
                         .timeout = group_->options().timeout,
                         .ranks_here = group_->options().ranks_here};
  return make_communicator(std::move(options), std::move(control), group_->fabric().subset(members), rank_);
}

at::Tensor DirectCommunicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  return allocate_in_order(sizes, options, false);
}

at::Tensor DirectCommunicator::allocate_shared(at::IntArrayRef sizes, at::TensorOptions options) {
  return allocate_in_order(sizes, options, true);
}

at::Tensor DirectCommunicator::allocate_in_order(at::IntArrayRef sizes, at::TensorOptions options, bool shared) {
  if (!options.device().is_cpu()) throw std::invalid_argument("allocate: only memory of the CPU is shared here");
  const std::size_t bytes = count_bytes(sizes, options.dtype().itemsize(), size());
  std::shared_ptr<void> memory;
  run_in_order({.elements = static_cast<std::int64_t>(bytes), .op = Op::kAllocate},
               [&] { memory = allocate_now(bytes, shared); });
  return at::from_blob(
      memory.get(), sizes, [memory](void*) {}, options);
}

// Of one block: a part of each rank's own, or one for all.
std::shared_ptr<void> DirectCommunicator::allocate_now(std::size_t bytes, bool shared) {
  const std::size_t stride = round_up(bytes);
  auto& fabric = group_->fabric();
  std::optional<Fabric::Block> made;
  if (rank() == 0) made = fabric.create(shared ? stride : stride * size());
  const Call call{.elements = static_cast<std::int64_t>(bytes), .op = Op::kAllocate};
  const auto handle = exchange_values(*group_, call, made ? made->handle : Fabric::Handle{})[0];
  auto mapping = made ? made->memory : fabric.open(handle);
  // By its user: the memory lies near to it.
  if (!shared || rank() == 0) fabric.reserve(handle, shared ? 0 : stride * rank(), stride);
  direct::barrier(*group_);
  fabric.release();
  if (shared) return mapping;
  const Regions::Region region{++last_region_, static_cast<std::byte*>(mapping.get()), stride};
  return Regions::add(regions_, region, rank(), std::move(mapping));
}

Location DirectCommunicator::locate(const void* begin, std::size_t bytes) const {
  if (group_->fabric().reaches_everything()) return {reinterpret_cast<std::uint64_t>(begin), kEverywhere};
  return regions_->locate(begin, bytes);
}

// When all posts lie in one region, every rank knows it, because its own post lies there too. All ranks look at the
// same posts, so they come to the same answer.
Addresses DirectCommunicator::addresses(const Group& group, Location Post::*which) const {
  const std::uint32_t id = (group.post_of(0).*which).region;
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::uint32_t theirs = (group.post_of(rank).*which).region;
    if (theirs == 0 || theirs != id) return {};
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

CommunicatorPtr connect(const std::string& backend, const World& world, std::unique_ptr<Fabric> fabric) {
  const auto& [place, store, timeout, progress_thread] = world;
  const std::string key = backend + "/control";
  std::shared_ptr<void> control;
  if (place.rank == 0) {
    auto made = fabric->create(ControlBlock::bytes(place.size));
    control = made.memory;
    std::ostringstream text;
    text << made.handle.owner << ' ' << made.handle.token << ' ' << made.handle.bytes;
    store->set(key, text.str());
  } else {
    Fabric::Handle handle;
    std::istringstream(store->get(key)) >> handle.owner >> handle.token >> handle.bytes;
    control = fabric->open(handle);
  }
  store_barrier(*store, backend + "/connected", place.size);
  fabric->release();
  auto rank = std::make_shared<Rank>();
  rank->messages = std::make_shared<AllMessages>();
  if (wants_progress_thread(world)) rank->queue.start_progress_thread();
  Group::Options options{
      .name = "world", .rank = place.rank, .size = place.size, .timeout = timeout, .ranks_here = place.size};
  return make_communicator(std::move(options), std::move(control), std::move(fabric), std::move(rank));
}

}  // namespace phalanx::direct
