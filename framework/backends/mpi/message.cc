// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/message.h"

#include <exception>
#include <utility>

#include "framework/backends/mpi/types.h"
#include "framework/backends/mpi/ulfm.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

// Calls start(type, count) with an MPI type and count that describe `bytes` bytes.
template <class Start>
int with_bytes(std::int64_t bytes, std::int64_t most, const Start& start) {
  if (bytes <= most) return start(MPI_BYTE, static_cast<int>(bytes));
  MPI_Datatype run = make_run(MPI_BYTE, 0, bytes, most);
  const int code = start(run, 1);
  MPI_Type_free(&run);
  return code;
}

// The memory of an abandoned message, which MPI may still use.
struct Leftover {
  at::Tensor tensor;
  std::vector<std::byte> stray;
};

}  // namespace

Message::Message(const MessageContext& context, at::Tensor tensor, const Call& call)
    : context_(context),
      call_(call),
      sequence_(group().next_sequence()),
      ticket_(recorder().launched(*context.record, call)),
      tensor_(std::move(tensor)),
      expected_bytes_(static_cast<std::int64_t>(tensor_.nbytes())),
      actual_bytes_(expected_bytes_) {}

void Message::send() {
  const std::lock_guard lock(mutex_);
  try {
    group().throw_if_broken();
    expect_success(with_bytes(expected_bytes_, group().options().max_elements, [&](MPI_Datatype type, int count) {
      return MPI_Isend(tensor_.data_ptr(), count, type, call_.peer, call_.tag, group().comm(), &request_);
    }));
    in_mpi_ = true;
  } catch (const CommError& error) {
    finish(error);
  }
}

void Message::receive() {
  if (!group().broken()) return group().inbox()->add({group().comm(), call_.peer, call_.tag}, *this);
  const std::lock_guard lock(mutex_);
  try {
    group().throw_if_broken();
  } catch (const CommError& error) {
    finish(error);
  }
}

void Message::wait() {
  {
    const std::lock_guard lock(mutex_);
    if (!done_) recorder().started(ticket_);
  }
  // MPI reports the end of a receiver, but not that of a sender from which nothing has come.
  const auto ready = [this] {
    if (test()) return true;
    if (group().any_ended()) group().throw_if_ended(call_.peer, where());
    return false;
  };
  try {
    group().wait(ready, group().options().timeout, [this] { return where(); }, [this] { return awaited(); });
  } catch (const CommError& error) {
    give_up(error);
  }
  const std::lock_guard lock(mutex_);
  if (auto error = std::exchange(error_, std::nullopt)) throw CommError(*error);
}

bool Message::done() const {
  if (done_.load(std::memory_order_acquire)) return true;
  group().inbox()->progress();
  return const_cast<Message*>(this)->test();
}

bool Message::take() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (!in_mpi_) take_if_there();
  } catch (const CommError& error) {
    finish(error);
  } catch (const std::exception& error) {
    finish(CommError(CommError::Kind::kSystem, where() + ": " + error.what()));
  }
  return in_mpi_ || done_;
}

void Message::take_if_there() {
  int there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};
  expect_success(MPI_Improbe(call_.peer, call_.tag, group().comm(), &there, &message, &status));
  if (there) post_receive(message, status);
}

void Message::post_receive(MPI_Message message, const MPI_Status& status) {
  MPI_Count bytes = 0;
  expect_success(MPI_Get_elements_x(&status, MPI_BYTE, &bytes));
  actual_bytes_ = bytes;
  const bool fits = actual_bytes_ == expected_bytes_;
  if (!fits) unexpected_.resize(static_cast<std::size_t>(actual_bytes_));
  void* data = fits ? tensor_.data_ptr() : unexpected_.data();
  expect_success(with_bytes(actual_bytes_, group().options().max_elements, [&](MPI_Datatype type, int count) {
    return MPI_Imrecv(data, count, type, &message, &request_);
  }));
  in_mpi_ = true;
}

std::string Message::awaited() const {
  const auto peer = "rank " + std::to_string(call_.peer) + ", tag " + std::to_string(call_.tag);
  return call_.op == Op::kSend ? peer + ", to receive it" : "a message from " + peer;
}

void Message::expect_success(int code) const {
  if (code != MPI_SUCCESS) group().check(code, where());
}

bool Message::test() {
  const std::lock_guard lock(mutex_);
  if (done_ || !in_mpi_) return done_;
  try {
    int flag = 0;
    expect_success(MPI_Test(&request_, &flag, MPI_STATUS_IGNORE));
    if (flag) finish(mismatch());
  } catch (const CommError& error) {
    finish(error);
  }
  return done_;
}

std::optional<CommError> Message::mismatch() const {
  if (actual_bytes_ == expected_bytes_) return std::nullopt;
  return CommError(CommError::Kind::kMismatch, where() + ": rank " + std::to_string(call_.peer) + " sent " +
                                                   std::to_string(actual_bytes_) + " bytes with tag " +
                                                   std::to_string(call_.tag) + ", but the tensor has " +
                                                   std::to_string(expected_bytes_));
}

void Message::finish(std::optional<CommError> error) {
  if (error && error->kind() != CommError::Kind::kMismatch) group().fail(*error);
  recorder().finished(ticket_, !error);
  error_ = std::move(error);
  tensor_.reset();
  unexpected_ = {};
  done_.store(true, std::memory_order_release);
}

// Without ULFM, the other ranks would not learn that this one has left.
void Message::abandon() {
  if (ulfm() == nullptr) return wait();
  if (!done()) give_up(abandoned(where()));
}

void Message::give_up(const CommError& error) {
  group().inbox()->remove({group().comm(), call_.peer, call_.tag}, *this);
  const std::lock_guard lock(mutex_);
  if (done_) return;
  if (in_mpi_) keep_until_exit(std::make_shared<Leftover>(std::move(tensor_), std::move(unexpected_)));
  finish(error);
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
