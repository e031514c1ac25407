// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "framework/comm/operations/abandonable.h"
#include "framework/comm/operations/call.h"
#include "framework/comm/operations/flight_recorder.h"
#include "framework/comm/operations/work.h"

namespace phalanx::shared_memory {

class Transfer;

/// The owner of the Messages that move transfers.
class TransferOwner {
 public:
  virtual ~TransferOwner() = default;
  virtual void await(Transfer& transfer) = 0;    // blocks until `transfer` is complete
  virtual void abandon(Transfer& transfer) = 0;  // breaks the group unless `transfer` is complete
};

/// One message that is sent or received. Its Messages object moves it under a lock; any thread may test it and wait.
class Transfer final : public Work::State, public Abandonable {
 public:
  /// Keeps the owner alive.
  Transfer(at::Tensor tensor, const Call& call, std::shared_ptr<TransferOwner> owner)
      : tensor_(std::move(tensor)),
        data_(static_cast<std::byte*>(tensor_.data_ptr())),
        bytes_(tensor_.nbytes()),
        call_(call),
        owner_(std::move(owner)) {}

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const Call& call() const { return call_; }
  int peer() const { return call_.peer; }
  int tag() const { return call_.tag; }

  void wait() override {
    if (!done()) owner_->await(*this);
    if (auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }
  bool done() const override { return done_.load(std::memory_order_acquire); }
  void abandon() override {
    if (call_.op == Op::kSend) return wait();  // a peer takes each message in its next wait for anything
    if (!done()) owner_->abandon(*this);
  }

  /// Completes the transfer and releases the tensor. Must be called once. `error` is the reason if it failed.
  void complete(std::exception_ptr error = nullptr) {
    recorder->finished(ticket, error == nullptr);
    error_ = std::move(error);
    tensor_.reset();
    done_.store(true, std::memory_order_release);
  }

  const at::Tensor& tensor() const { return tensor_; }

  std::size_t moved = 0;  // bytes that the sender has written
  FlightRecorder* recorder = nullptr;
  FlightRecorder::Ticket ticket{};

 private:
  at::Tensor tensor_;
  std::byte* data_;
  std::size_t bytes_;
  Call call_;
  std::shared_ptr<TransferOwner> owner_;
  std::exception_ptr error_;
  std::atomic<bool> done_{false};
};
using TransferPtr = std::shared_ptr<Transfer>;

}  // namespace phalanx::shared_memory
