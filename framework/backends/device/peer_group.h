// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "framework/backends/device/peer_memory.h"
#include "framework/comm/communicator.h"
#include "framework/comm/operations/operation.h"

namespace phalanx {

/// Collectives on device tensors among the ranks of one host, which read and write each other's device memory. The
/// ranks synchronize through a group of the host; before that, each waits for its own device.
///
/// Memory from allocate() is used in place. Other tensors are copied through windows: each rank has one of
/// `window_bytes`, and an operation takes as many rounds as it needs. Device memory traffic per rank, for n bytes on P
/// ranks:
///
/// | | read | written |
/// |---|---|---|
/// | all_reduce in place, 2 ranks | 1.5 n | n |
/// | all_reduce in place | (P + 3) n / P + n | (2 P + 1) n / P |
/// | reduce_scatter, of inputs of n | (P + 1) n / P | 2 n / P |
/// | broadcast, all_gather | bytes that the rank receives | the same |
/// | through windows | 2 n more | 2 n more |
///
/// Ranks on the same device share its bandwidth. A PeerGroup belongs to one world and performs one operation at a time.
class PeerGroup {
 public:
  static constexpr std::int64_t kWindowBytes = 8 << 20;

  explicit PeerGroup(std::shared_ptr<PeerMemory> memory, std::int64_t window_bytes = kWindowBytes)
      : memory_(std::move(memory)), window_bytes_(window_bytes) {}

  /// Returns true if the operation is supported: broadcast, reduce, all_reduce, and all_gather and reduce_scatter with
  /// even parts. Reductions must be of numbers other than int16, and of a kind that LibTorch has on devices.
  static bool supports(const Operation& operation);

  /// Allocates the windows that groups of several ranks need at the first call. Returns true if there are windows.
  /// Returns false on all ranks if one of them cannot allocate or open memory, which is logged once; operations must
  /// then go another way. Collective. Throws CommError for other failures.
  bool open_windows(Communicator& host);

  /// Performs the operation. Must be called in a body of host.run(), after open_windows(). Blocks until the result is
  /// complete. Throws CommError.
  void run(Communicator& host, const Operation& operation);

  /// Allocates memory as in Communicator::allocate().
  at::Tensor allocate(Communicator& host, const Allocation& allocation);

  /// Returns a PeerGroup for a group that is split from this one.
  std::shared_ptr<PeerGroup> for_child() const { return std::make_shared<PeerGroup>(memory_, window_bytes_); }

 private:
  using Parts = std::vector<at::Tensor>;  // one per rank

  // Memory that all ranks have allocated together, with the same number of bytes on each.
  struct Block {
    at::Tensor own;
    Parts of_ranks;
  };

  Block allocate_block(Communicator& host, std::int64_t bytes);
  bool make_windows(Communicator& host);
  Parts in_place(Communicator& host, const at::Tensor& tensor) const;
  Parts windows(const at::Tensor& like, std::int64_t elements) const;
  void in_rounds(Communicator& host, const Operation& operation);
  void gather_in_rounds(Communicator& host, const Operation& operation);
  void scatter_in_rounds(Communicator& host, const Operation& operation);

  std::shared_ptr<PeerMemory> memory_;
  std::int64_t window_bytes_;
  std::optional<bool> open_;              // empty: not tried yet
  Block windows_;                         // only if the group has several ranks
  std::map<std::int64_t, Block> blocks_;  // by number, which is the same on all ranks
  std::int64_t next_block_ = 0;
};

}  // namespace phalanx
