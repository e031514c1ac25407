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
std::vector<T> exchange_values(Group& group, const T& mine) {
  std::vector<T> all(group.size());
  exchange(group, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
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

template <class Run>
void DirectCommunicator::run_on(const at::Tensor& tensor, Run run) {
  try {
    run();
  } catch (const CommError& error) {
    if (error.kind() != CommError::Kind::kMismatch && group_->fabric().reaches_everything()) keep_for_good(tensor);
    throw;
  }
}

template <class Run>
void DirectCommunicator::run_in_order(Run run) {
  auto guarded = [this, run = std::move(run)] {
    try {
      run();
    } catch (const std::exception& error) {
      group_->fail(CommError(CommError::Kind::kSystem, error.what()));  // peers would wait for the rest of it
      throw;
    }
  };
  queue_->launch(std::move(guarded)).wait();
}

CommunicatorPtr DirectCommunicator::split(int color, int key) {
  CommunicatorPtr child;
  run_in_order([&] { child = split_now(color, key); });
  return child;
}

CommunicatorPtr DirectCommunicator::split_now(int color, int key) {
  const auto wishes = exchange_values(*group_, Wish{color, key});
  const auto members = members_of(wishes, color);
  const bool takes_part = color >= 0;
  std::optional<Fabric::Block> made;
  if (takes_part && members.front() == rank()) made = group_->fabric().create(ControlBlock::bytes(members.size()));
  const auto handles = exchange_values(*group_, made ? made->handle : Fabric::Handle{});

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
                         .timeout = group_->timeout()};
  return std::make_shared<DirectCommunicator>(
      std::make_unique<Group>(std::move(options), std::move(control), group_->fabric().subset(members)), queue_);
}

at::Tensor DirectCommunicator::allocate(at::IntArrayRef sizes, at::TensorOptions options) {
  if (!options.device().is_cpu()) throw std::invalid_argument("allocate: only memory of the CPU is shared here");
  std::size_t bytes = options.dtype().itemsize();
  for (auto size : sizes) {
    if (size < 0) throw std::invalid_argument("allocate: negative size");
    bytes *= static_cast<std::size_t>(size);
  }
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
  const auto handle = exchange_values(*group_, made ? made->handle : Fabric::Handle{})[0];
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
  Group::Options options{.name = "world", .rank = rank, .size = size, .timeout = timeout};
  auto group = std::make_unique<Group>(std::move(options), std::move(control), std::move(fabric));
  return std::make_shared<DirectCommunicator>(std::move(group), std::make_shared<OperationQueue>());
}

}  // namespace phalanx::direct
