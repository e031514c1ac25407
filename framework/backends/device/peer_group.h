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
#include "framework/comm/operation.h"

namespace phalanx {

/// Collectives among ranks of one host on tensors of their devices, which read and write each other's memory. Ranks
/// meet by a group of the host, and each waits for its own device before it does.
///
/// Memory from allocate() is worked on where it is. Other tensors go through windows of `window_bytes` that each rank
/// has, in as many rounds as that takes. Per rank, of n bytes on P ranks, in device memory:
///
/// | | read | written |
/// |---|---|---|
/// | all_reduce in place, 2 ranks | 1.5 n | n |
/// | all_reduce in place | (P + 3) n / P + n | (2 P + 1) n / P |
/// | reduce_scatter, of inputs of n | (P + 1) n / P | 2 n / P |
/// | broadcast, all_gather | what the rank gets | the same |
/// | through windows | 2 n more | 2 n more |
///
/// (All ranks of one device share its bandwidth.) A group is of one world; one operation at a time.
class PeerGroup {
 public:
  static constexpr std::int64_t kWindowBytes = 8 << 20;

  explicit PeerGroup(std::shared_ptr<PeerMemory> memory, std::int64_t window_bytes = kWindowBytes)
      : memory_(std::move(memory)), window_bytes_(window_bytes) {}

  /// Whether it has such an operation: broadcast, reduce, all_reduce, and even all_gather and reduce_scatter, of
  /// numbers and the reductions that LibTorch has on devices.
  static bool can(const Operation& operation);

  /// Makes the windows that operations of several ranks need, at the first call; then tells whether there are any.
  /// False on all ranks where one cannot make or open memory, which the log says once: operations have to go another
  /// way. Collective; throws CommError for other failures.
  bool open_windows(Communicator& host);

  /// Does the operation, in a body of host.run(), after open_windows(). Blocks until the result is there. Throws
  /// CommError.
  void run(Communicator& host, const Operation& operation);

  /// As Communicator::allocate().
  at::Tensor allocate(Communicator& host, const Allocation& allocation);

  /// For a group that is split from this one.
  std::shared_ptr<PeerGroup> of_child() const { return std::make_shared<PeerGroup>(memory_, window_bytes_); }

 private:
  using Parts = std::vector<at::Tensor>;  // of each rank

  // Memory that all ranks have allocated at once, of as many bytes.
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
  std::optional<bool> open_;              // none: not tried yet
  Block windows_;                         // of several ranks
  std::map<std::int64_t, Block> blocks_;  // by number, alike on all ranks
  std::int64_t next_block_ = 0;
};

}  // namespace phalanx
