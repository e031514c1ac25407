// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "framework/collectives/compression/compressor.h"
#include "framework/collectives/compression/compressor_table.h"
#include "framework/comm/decorator.h"

namespace phalanx {

/// What one rank put on the wire in compressed reductions, as Wire counts it.
struct Traffic {
  std::int64_t reductions = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t uncompressed_bytes = 0;  // what the same reductions would have sent as float32

  Traffic& operator+=(const Traffic& other) {
    reductions += other.reductions;
    sent_bytes += other.sent_bytes;
    uncompressed_bytes += other.uncompressed_bytes;
    return *this;
  }

  /// How many times less was sent; 1 where nothing had to be sent.
  double ratio() const {
    return sent_bytes > 0 ? static_cast<double>(uncompressed_bytes) / static_cast<double>(sent_bytes) : 1;
  }
};

/// A communicator whose all_reduce compresses. Sums and means of float32 become about that, bitwise the same on all
/// ranks; everything else is passed on as it is, and so is everything in a group of one rank. Like every operation they
/// return at once and keep their place in the order.
///
/// Each tensor has a compressor of its own, which remembers what was left out (see CompressorTable): meant for tensors
/// that live long and are reduced again and again, such as buckets of gradients. A tensor that is reduced once loses
/// what is left out.
///
/// Thread-safe, as far as the communicator below is. Groups split from it compress in the same way, and count for
/// themselves.
class CompressedCommunicator final : public Decorator {
 public:
  static constexpr std::size_t kMaxTensors = 256;

  /// `max_tensors`: how many tensors are remembered; above 0.
  CompressedCommunicator(CommunicatorPtr inner, Compressors::Choice compression, std::size_t max_tensors = kMaxTensors);

  Work launch(Operation operation) override;

  /// Says which parameters lie in `tensor`, one behind the other, before it is first reduced; the same on all ranks.
  /// Throws std::invalid_argument where they have not as many elements as the tensor, or where it is not float32.
  void set_shapes(const at::Tensor& tensor, std::vector<std::vector<std::int64_t>> shapes);

  /// What the compressor of `tensor` remembers; while no operation is under way.
  StateDict state(const at::Tensor& tensor);

  /// Of the operations that are complete.
  Traffic traffic() const;

 private:
  struct Meter {
    mutable std::mutex mutex;
    Traffic traffic;
  };

  CommunicatorPtr wrap(CommunicatorPtr child) override;

  Compressors::Choice compression_;
  std::size_t max_tensors_;
  std::mutex mutex_;
  CompressorTable table_;
  std::shared_ptr<Meter> meter_ = std::make_shared<Meter>();  // operations may outlive the communicator
};

}  // namespace phalanx
