// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_cuda/nccl_communicator.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include "framework/testing/fake_cuda/nccl_faults.h"
#include "framework/testing/fake_cuda/runtime.h"
#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx::testing {
namespace {

using std::chrono::microseconds;

std::array<std::atomic<ncclResult_t>, NcclSegment::kMostRanks> broken{};
std::atomic<microseconds> longest_delay{microseconds(2000)};
std::atomic<long> threads{0};
std::atomic<bool> aborts_are_held{false};
std::atomic<long> freed_early{0};

std::mutex text_mutex;
std::string last_error;

// A rank's arguments of a split, which the others read.
struct SplitEntry {
  int color, key;
};
struct Place {
  char name[56];
};
static_assert(sizeof(Place) <= sizeof(NcclSegment::Blob));

template <class T>
NcclSegment::Blob blob_of(const T& value) {
  NcclSegment::Blob blob{};
  std::memcpy(blob.data(), &value, sizeof(value));
  return blob;
}

template <class T>
T value_of(const NcclSegment::Blob& blob) {
  T value;
  std::memcpy(&value, blob.data(), sizeof(value));
  return value;
}

}  // namespace

void break_nccl(int rank, ncclResult_t result) { broken.at(static_cast<std::size_t>(rank)) = result; }
void delay_nccl(microseconds longest) { longest_delay = longest; }
long nccl_threads() { return threads; }
void hold_nccl_aborts(bool hold) { aborts_are_held = hold; }
long nccl_freed_early() { return freed_early; }

void set_last_nccl_error(const std::string& text) {
  const std::lock_guard lock(text_mutex);
  last_error = text;
}

std::string last_nccl_error() {
  const std::lock_guard lock(text_mutex);
  return last_error;
}

FakeNcclCommunicator::FakeNcclCommunicator(int rank, int ranks, int device, bool blocking)
    : rank_(rank), ranks_(ranks), device_(device), blocking_(blocking), dice_(static_cast<std::uint64_t>(rank) + 1) {}

FakeNcclCommunicator::~FakeNcclCommunicator() {
  aborted_ = true;
  join();
}

ncclResult_t FakeNcclCommunicator::check_ready() const {
  const ncclResult_t state = async_error();
  if (state != ncclInProgress) return state;
  set_last_nccl_error("Attempt to use communicator before the previous operation returned ncclSuccess");
  return ncclInvalidArgument;
}

ncclResult_t FakeNcclCommunicator::async_error() const {
  const ncclResult_t state = state_, error = broken[static_cast<std::size_t>(rank_)];
  if (state != ncclSuccess || error != ncclSuccess) return state != ncclSuccess ? state : error;
  if (!segment_ || !segment_->mixes_graphs()) return ncclSuccess;
  set_last_nccl_error("some ranks have an operation in a graph that other ranks have launched");
  return ncclInvalidUsage;
}

ncclResult_t FakeNcclCommunicator::run(Job job) {
  if (blocking_) return job();
  join();
  state_ = ncclInProgress;
  ++threads;
  // One call in eight is slow.
  const auto longest = static_cast<std::uint64_t>(longest_delay.load().count());
  const microseconds delay(dice_() % (dice_() % 8 == 0 ? longest + 1 : longest / 32 + 1));
  thread_ = std::thread([this, delay, job = std::move(job)] {
    std::this_thread::sleep_for(delay);
    const ncclResult_t result = aborted_.load() ? ncclInternalError : job();
    state_ = result;
  });
  return ncclInProgress;
}

ncclResult_t FakeNcclCommunicator::connect(const std::string& name) {
  try {
    segment_ = std::make_shared<NcclSegment>(name);
  } catch (const std::system_error& error) {
    set_last_nccl_error(error.what());
    return ncclSystemError;
  }
  return segment_->all_gather(rank_, ranks_, {}, [this] { return aborted_.load(); }).empty() ? ncclInternalError
                                                                                             : ncclSuccess;
}

// The first rank of each child makes its memory.
ncclResult_t FakeNcclCommunicator::split(int color, int key, bool blocking,
                                         std::shared_ptr<FakeNcclCommunicator>& child) {
  if (outstanding_ > 0) {
    set_last_nccl_error("a communicator is split while it has outstanding operations, which may deadlock");
    return ncclInvalidUsage;
  }
  const auto stopped = [this] { return aborted_.load(); };
  const auto entries = segment_->all_gather(rank_, ranks_, blob_of(SplitEntry{color, key}), stopped);
  if (entries.empty()) return ncclInternalError;
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto entry = value_of<SplitEntry>(entries[static_cast<std::size_t>(rank)]);
    if (color >= 0 && entry.color == color) members.emplace_back(entry.key, rank);
  }
  std::ranges::sort(members);
  Place place{};
  std::shared_ptr<void> keep;
  if (!members.empty() && members[0].second == rank_) {
    const auto made = NcclSegment::make();
    made.name.copy(place.name, sizeof(place.name) - 1);
    keep = made.keep;
  }
  const auto places = segment_->all_gather(rank_, ranks_, blob_of(place), stopped);
  if (places.empty()) return ncclInternalError;
  if (!members.empty()) {
    const auto own = std::ranges::find(members, rank_, &std::pair<int, int>::second) - members.begin();
    child = std::make_shared<FakeNcclCommunicator>(static_cast<int>(own), static_cast<int>(members.size()), device_,
                                                   blocking);
    const auto first = value_of<Place>(places[static_cast<std::size_t>(members[0].second)]);
    child->segment_ = std::make_shared<NcclSegment>(first.name);
  }
  return segment_->all_gather(rank_, ranks_, {}, stopped).empty() ? ncclInternalError : ncclSuccess;
}

ncclResult_t FakeNcclCommunicator::launch(const std::vector<NcclCall>& calls, bool captured) {
  if (cudaSetDevice(device_) != cudaSuccess) return ncclUnhandledCudaError;
  try {
    return enqueue(calls, captured);
  } catch (const std::exception& error) {  // a missing wait
    set_last_nccl_error(error.what());
    return ncclUnhandledCudaError;
  }
}

ncclResult_t FakeNcclCommunicator::enqueue(const std::vector<NcclCall>& calls, bool captured) {
  std::vector<Access> accesses;
  for (const auto& call : calls) {
    for (const auto& access : accesses_of(call, rank_, ranks_)) {
      if (access.bytes == 0) continue;
      accesses.push_back(access);
      if (is_device_address(access.begin)) continue;
      set_last_nccl_error(std::string(call.name) + ": a buffer is not in the memory of a device");
      return ncclInvalidArgument;
    }
  }
  std::shared_ptr<void> in_graph;  // exists as long as the graph
  if (captured) {
    ++in_graphs_;
    in_graph = std::shared_ptr<void>(nullptr, [self = shared_from_this()](void*) { --self->in_graphs_; });
  }
  auto buffers = std::make_shared<Buffers>();
  if (!captured) {  // a graph owns the memory of its operations
    for (const auto& access : accesses) buffers->emplace_back(access.begin, allocation_at(access.begin));
    const std::lock_guard lock(buffers_mutex_);
    std::erase_if(buffers_, [](const auto& one) { return one.expired(); });
    buffers_.emplace_back(buffers);
  }
  const auto make = [self = shared_from_this(), calls, captured, in_graph,
                     buffers = std::move(buffers)]() -> Streams::Poll {
    ++self->outstanding_;
    auto operation = std::make_shared<NcclOperation>(self->segment_, self->rank_, self->ranks_, calls, captured);
    return [self, operation, buffers] {
      const bool stuck = broken[static_cast<std::size_t>(self->rank_)] != ncclSuccess;
      if (!self->aborted_ && (stuck || !operation->progress())) return false;
      --self->outstanding_;
      return true;
    };
  };
  if (captured) {
    FakeGraph::add_polled(calls[0].name, make, accesses);
  } else {
    Streams::global().launch_polled(
        {.name = calls[0].name, .stream = stream_number(calls[0].stream), .accesses = accesses}, make());
  }
  return ncclSuccess;
}

ncclResult_t FakeNcclCommunicator::finish_operations() {
  while (outstanding_ > 0) {
    if (aborted_.load()) return ncclInternalError;
    std::this_thread::sleep_for(microseconds(50));
  }
  return ncclSuccess;
}

void FakeNcclCommunicator::count_freed_early() {
  const std::lock_guard streams(Streams::global().mutex());  // no operation ends meanwhile
  const std::lock_guard lock(buffers_mutex_);
  for (const auto& one : buffers_) {
    const auto buffers = one.lock();
    const auto is_free = [](const auto& buffer) { return allocation_at(buffer.first) != buffer.second; };
    if (buffers && std::ranges::any_of(*buffers, is_free)) ++freed_early;
  }
}

ncclResult_t FakeNcclCommunicator::abort() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (aborts_are_held && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(microseconds(50));
  count_freed_early();
  aborted_ = true;
  join();
  while (in_graphs_ > 0) {
    if (std::chrono::steady_clock::now() > end) return ncclInternalError;
    std::this_thread::sleep_for(microseconds(50));
  }
  return ncclSuccess;
}

void FakeNcclCommunicator::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace phalanx::testing
