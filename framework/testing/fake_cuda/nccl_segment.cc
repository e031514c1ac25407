// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_cuda/nccl_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

namespace phalanx::testing {
namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace

std::size_t NcclChannel::send(const std::byte* data, std::size_t bytes) {
  const std::uint64_t sent = sent_.load(std::memory_order_relaxed);
  const std::size_t room = kBytes - static_cast<std::size_t>(sent - received_.load(std::memory_order_acquire));
  const std::size_t place = static_cast<std::size_t>(sent % kBytes);
  const std::size_t count = std::min({bytes, room, kBytes - place});
  if (count > 0) std::memcpy(data_.data() + place, data, count);
  sent_.store(sent + count, std::memory_order_release);
  return count;
}

std::size_t NcclChannel::receive(std::byte* data, std::size_t bytes) {
  const std::uint64_t received = received_.load(std::memory_order_relaxed);
  const std::size_t there = static_cast<std::size_t>(sent_.load(std::memory_order_acquire) - received);
  const std::size_t place = static_cast<std::size_t>(received % kBytes);
  const std::size_t count = std::min({bytes, there, kBytes - place});
  if (count > 0) std::memcpy(data, data_.data() + place, count);
  received_.store(received + count, std::memory_order_release);
  return count;
}

NcclSegment::Made NcclSegment::make() {
  const int file = checked(::memfd_create("fake_nccl", MFD_CLOEXEC), "memfd_create");
  checked(::ftruncate(file, sizeof(Contents)), "ftruncate");
  return {.name = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file),
          .keep = std::shared_ptr<void>(nullptr, [file](void*) { ::close(file); })};
}

NcclSegment::NcclSegment(const std::string& name) {
  const int file = checked(::open(name.c_str(), O_RDWR | O_CLOEXEC), name.c_str());
  void* const memory = ::mmap(nullptr, sizeof(Contents), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  contents_ = static_cast<Contents*>(memory);
}

NcclSegment::~NcclSegment() { ::munmap(contents_, sizeof(Contents)); }

NcclChannel& NcclSegment::channel(int from, int to) {
  return contents_->channels.at(static_cast<std::size_t>(from * kMostRanks + to));
}

void NcclSegment::report_mixed_graphs() { contents_->mixes_graphs = true; }

bool NcclSegment::mixes_graphs() const { return contents_->mixes_graphs; }

std::vector<NcclSegment::Blob> NcclSegment::all_gather(int rank, int ranks, const Blob& own,
                                                       const std::function<bool()>& stopped) {
  auto& seats = contents_->seats;
  Seat& seat = seats.at(static_cast<std::size_t>(rank));
  const std::uint64_t call = seat.calls.load(std::memory_order_relaxed) + 1;
  seat.blobs[call % 2] = own;
  seat.calls.store(call, std::memory_order_release);
  std::vector<Blob> all;
  for (int i = 0; i < ranks; ++i) {
    const Seat& other = seats.at(static_cast<std::size_t>(i));
    while (other.calls.load(std::memory_order_acquire) < call) {
      if (stopped()) return {};
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    all.push_back(other.blobs[call % 2]);
  }
  return all;
}

}  // namespace phalanx::testing
