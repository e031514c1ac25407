#include "framework/backends/direct/communicator.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "framework/base/error.h"

namespace phalanx::direct {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t bytes) { return std::max(kPage, (bytes + kPage - 1) / kPage * kPage); }

Elements elements_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.numel(), tensor.scalar_type()};
}

template <class T>
std::vector<T> exchange_values(Group& group, Operation operation, std::int64_t argument, const T& mine) {
  std::vector<T> all(group.size());
  exchange(group, operation, argument, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
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

// Where a peer reaches this rank's memory directly, one that comes late to an operation that this rank has given up may
// still write to it.
void keep_for_good(const at::Tensor& tensor) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<at::Tensor>;
  std::lock_guard lock(mutex);
  kept.push_back(tensor);
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

DirectCommunicator::DirectCommunicator(std::unique_ptr<Group> group, std::shared_ptr<OperationQueue> queue)
    : group_(std::move(group)), queue_(std::move(queue)) {}

DirectCommunicator::~DirectCommunicator() = default;

Work DirectCommunicator::broadcast(at::Tensor tensor, int root) {
  check_tensor("broadcast", tensor);
  check_root("broadcast", root, size());
  return queue_->launch([self = shared_from_this(), tensor = std::move(tensor), root] {
    self->run_on(tensor, [&] { direct::broadcast(*self->group_, *self, elements_of(tensor), root); });
  });
}

Work DirectCommunicator::all_reduce(at::Tensor tensor, Reduction op) {
  check_tensor("all_reduce", tensor);
  return queue_->launch([self = shared_from_this(), tensor = std::move(tensor), op] {
    self->run_on(tensor, [&] { direct::all_reduce(*self->group_, *self, elements_of(tensor), op); });
  });
}

Work DirectCommunicator::barrier() {
  return queue_->launch([self = shared_from_this()] { direct::barrier(*self->group_); });
}

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

template <class Run>
void DirectCommunicator::run_on(const at::Tensor& tensor, const Run& run) {
  group_->throw_if_broken();
  try {
    run_guarded(run);
  } catch (...) {
    if (group_->broken() && group_->fabric().reaches_everything()) keep_for_good(tensor);
    throw;
  }
}

template <class Run>
void DirectCommunicator::run_in_order(const Run& run) {
  queue_->launch([this, &run] { run_guarded(run); }).wait();
}

CommunicatorPtr DirectCommunicator::split(int color, int key) {
  CommunicatorPtr child;
  run_in_order([&] { child = split_now(color, key); });
  return child;
}

CommunicatorPtr DirectCommunicator::split_now(int color, int key) {
  const auto wishes = exchange_values(*group_, Operation::kSplit, 0, Wish{color, key});
  const auto members = members_of(wishes, color);
  const bool takes_part = color >= 0;
  std::optional<Fabric::Block> made;
  if (takes_part && members.front() == rank()) made = group_->fabric().create(ControlBlock::bytes(members.size()));
  const auto handles = exchange_values(*group_, Operation::kSplit, 1, made ? made->handle : Fabric::Handle{});

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
  return std::make_shared<DirectCommunicator>(
      std::make_unique<Group>(std::move(options), std::move(control), group_->fabric().subset(members)), queue_);
}

at::Tensor DirectCommunicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  if (!options.device().is_cpu()) throw std::invalid_argument("allocate: only memory of the CPU is shared here");
  const std::size_t bytes = count_bytes(sizes, options.dtype().itemsize(), size());
  std::shared_ptr<void> memory;
  run_in_order([&] { memory = allocate_now(bytes); });
  return at::from_blob(
      memory.get(), sizes, [memory](void*) {}, options);
}

std::shared_ptr<void> DirectCommunicator::allocate_now(std::size_t bytes) {
  const std::size_t stride = round_up(bytes);
  auto& fabric = group_->fabric();
  std::optional<Fabric::Block> made;
  if (rank() == 0) made = fabric.create(stride * size());
  const auto handle = exchange_values(*group_, Operation::kAllocate, static_cast<std::int64_t>(bytes),
                                      made ? made->handle : Fabric::Handle{})[0];
  auto mapping = made ? made->memory : fabric.open(handle);
  fabric.reserve(handle, stride * rank(), stride);  // by its user: the memory lies near to it
  direct::barrier(*group_);
  fabric.release();
  const Regions::Region region{++last_region_, static_cast<std::byte*>(mapping.get()), stride};
  return Regions::add(regions_, region, rank(), std::move(mapping));
}

Location DirectCommunicator::locate(const void* begin, std::size_t bytes) const {
  if (group_->fabric().reaches_everything()) return {kEverywhere, reinterpret_cast<std::uint64_t>(begin)};
  return regions_->locate(begin, bytes);
}

// When all calls lie in one region, every rank knows it, because its own call lies there too. All ranks look at the
// same calls, so they come to the same answer.
std::vector<std::byte*> DirectCommunicator::addresses(const Group& group) const {
  std::vector<std::byte*> all;
  for (int rank = 0; rank < group.size(); ++rank) {
    const Location location = group.call_of(rank).location;
    if (location.region == 0) return {};
    if (location.region == kEverywhere) {
      all.push_back(reinterpret_cast<std::byte*>(location.offset));
      continue;
    }
    if (location.region != group.call_of(0).location.region) return {};
    const auto region = regions_->find(location.region);
    all.push_back(region.base + region.stride * rank + location.offset);
  }
  return all;
}

CommunicatorPtr connect(const std::string& backend, int rank, int size, Store& store, Seconds timeout,
                        std::unique_ptr<Fabric> fabric) {
  const std::string key = backend + "/control";
  std::shared_ptr<void> control;
  if (rank == 0) {
    auto made = fabric->create(ControlBlock::bytes(size));
    control = made.memory;
    std::ostringstream text;
    text << made.handle.owner << ' ' << made.handle.token << ' ' << made.handle.bytes;
    store.set(key, text.str());
  } else {
    Fabric::Handle handle;
    std::istringstream(store.get(key)) >> handle.owner >> handle.token >> handle.bytes;
    control = fabric->open(handle);
  }
  store_barrier(store, backend + "/connected", size);
  fabric->release();
  Group::Options options{.name = "world", .rank = rank, .size = size, .timeout = timeout, .ranks_here = size};
  auto group = std::make_unique<Group>(std::move(options), std::move(control), std::move(fabric));
  return std::make_shared<DirectCommunicator>(std::move(group), std::make_shared<OperationQueue>());
}

}  // namespace phalanx::direct
