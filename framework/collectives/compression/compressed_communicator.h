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

/// The bytes that one rank has sent in compressed reductions, as Wire counts them.
struct Traffic {
  std::int64_t reductions = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t uncompressed_bytes = 0;  // bytes that the same reductions would have sent as float32

  Traffic& operator+=(const Traffic& other) {
    reductions += other.reductions;
    sent_bytes += other.sent_bytes;
    uncompressed_bytes += other.uncompressed_bytes;
    return *this;
  }

  /// Returns the compression ratio; 1 if nothing was sent.
  double ratio() const {
    return sent_bytes > 0 ? static_cast<double>(uncompressed_bytes) / static_cast<double>(sent_bytes) : 1;
  }
};

/// A communicator that compresses all_reduce. Sums and means of float32 become approximate, but bitwise the same on all
/// ranks. All other operations are passed on unchanged, and so is everything in a group of one rank. Like every
/// operation, the compressed ones return at once and keep their place in the order.
///
/// Each tensor has its own compressor, which remembers its compression error (see CompressorTable). This is meant for
/// tensors that are reduced many times, such as gradient buckets. If a tensor is reduced only once, its compression
/// error is lost.
///
/// Thread-safe if the inner communicator is. Groups that are split from it compress in the same way and count their own
/// traffic.
class CompressedCommunicator final : public Decorator {
 public:
  static constexpr std::size_t kMaxTensors = 256;

  /// `max_tensors` is the number of tensors that are remembered; it must be above 0.
  CompressedCommunicator(CommunicatorPtr inner, Compressors::Choice compression, std::size_t max_tensors = kMaxTensors);

  Work launch(Operation operation) override;

  /// Sets the shapes of the parameters that `tensor` holds, one after the other. Must be called before the tensor is
  /// first reduced, with the same shapes on all ranks. Throws std::invalid_argument if the number of elements differs
  /// from that in the tensor, or if the tensor is not float32.
  void set_shapes(const at::Tensor& tensor, std::vector<std::vector<std::int64_t>> shapes);

  /// Returns the state of the compressor of `tensor`. Must not be called while an operation is in progress.
  StateDict state(const at::Tensor& tensor);

  /// Returns the traffic of all completed operations.
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
  std::shared_ptr<Meter> meter_ = std::make_shared<Meter>();  // shared, because operations may outlive the communicator
};

}  // namespace phalanx
