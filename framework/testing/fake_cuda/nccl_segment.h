// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace phalanx::testing {

/// Bytes that one rank sends to another, in order. Shared by two processes or threads, of which one sends and the other
/// receives.
class NcclChannel {
 public:
  /// Send or receive as many bytes as fit or are there. Return their number.
  std::size_t send(const std::byte* data, std::size_t bytes);
  std::size_t receive(std::byte* data, std::size_t bytes);

 private:
  static constexpr std::size_t kBytes = 32 << 10;

  std::atomic<std::uint64_t> sent_, received_;
  std::array<std::byte, kBytes> data_;
};

/// The memory that the ranks of a communicator share, which are processes or threads. It is a file without a name, so
/// it ends with the last of them.
class NcclSegment {
 public:
  static constexpr int kMostRanks = 16;
  using Blob = std::array<char, 64>;

  /// A new segment, which others can open by the name while `keep` exists.
  struct Made {
    std::string name;
    std::shared_ptr<void> keep;
  };
  static Made make();

  /// Throws std::system_error.
  explicit NcclSegment(const std::string& name);
  ~NcclSegment();
  NcclSegment(const NcclSegment&) = delete;
  NcclSegment& operator=(const NcclSegment&) = delete;

  /// The channel from one rank to another.
  NcclChannel& channel(int from, int to);

  /// Returns the blobs of all ranks once each has called it as often. Returns nothing if `stopped` becomes true before.
  std::vector<Blob> all_gather(int rank, int ranks, const Blob& own, const std::function<bool()>& stopped);

  /// Makes mixes_graphs() true for all ranks, for good.
  void report_mixed_graphs();

  /// Returns true if some ranks had an operation in a graph that others launched.
  bool mixes_graphs() const;

 private:
  struct Seat {
    std::atomic<std::uint64_t> calls;
    std::array<Blob, 2> blobs;  // of the last two calls: no rank is further ahead than one call
  };
  struct Contents {
    std::atomic<bool> mixes_graphs;
    std::array<Seat, kMostRanks> seats;
    std::array<NcclChannel, static_cast<std::size_t>(kMostRanks* kMostRanks)> channels;
  };

  Contents* contents_ = nullptr;
};

}  // namespace phalanx::testing
