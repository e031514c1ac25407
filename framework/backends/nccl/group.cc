// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/group.h"

#include <c10/cuda/CUDAGuard.h>

#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "framework/backends/nccl/device_scope.h"
#include "framework/backends/nccl/watched_graph.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/reason.h"

namespace phalanx::nccl {
namespace {

constexpr auto kLook = std::chrono::milliseconds(5);  // interval at which operations in flight are checked
constexpr auto kLeave = std::chrono::seconds(30);     // maximum wait for peers that do not leave
constexpr auto kPause = std::chrono::microseconds(20);
constexpr auto kSpin = std::chrono::microseconds(200);  // NCCL enqueues most calls earlier, so sleeping would cost more

Clock::time_point after(Seconds timeout) { return Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout); }

CommError explain(const std::string& where, ncclResult_t result, ncclComm_t comm) {
  const char* last = comm == nullptr ? nullptr : ncclGetLastError(comm);
  std::string text = where + ": NCCL says: " + ncclGetErrorString(result);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return {result == ncclRemoteError ? CommError::Kind::kPeerLost : CommError::Kind::kSystem, text};
}

CommError late(const std::string& where, Seconds waited) {
  std::ostringstream text;
  text.precision(3);
  text << where << ": waited " << waited.count() << " s for other ranks, which did not come";
  return {CommError::Kind::kTimeout, text.str()};
}

}  // namespace

bool is_recording(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
}

ncclResult_t settle(ncclComm_t comm, ncclResult_t result, Clock::time_point deadline) {
  const auto begin = Clock::now();
  while (result == ncclInProgress) {
    const auto now = Clock::now();
    if (now > deadline) return result;
    if (now < begin + kSpin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPause);
    }
    const ncclResult_t asked = ncclCommGetAsyncError(comm, &result);
    if (asked != ncclSuccess) return asked;
  }
  return result;
}

void Health::throw_if_broken() const {
  if (!broken()) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

bool Health::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (failure_) return false;
  failure_ = std::move(error);
  broken_.store(true, std::memory_order_release);
  return true;
}

class Group::InFlight final : public Work::State {
 public:
  InFlight(std::shared_ptr<Health> health, int device, std::string what, std::vector<at::Tensor> tensors,
           c10::cuda::CUDAStream launched_from)
      : what_(std::move(what)),
        tensors_(std::move(tensors)),
        health_(std::move(health)),
        device_(device),
        launched_from_(launched_from) {}

  void wait() override {
    if (recorded_ || !complete_.load(std::memory_order_acquire)) {
      health_->throw_if_broken();
      ended_.block(current_stream());
    }
    release_tensors();
  }

  // The watching thread enforces the timeout.
  void synchronize() override {
    while (!done()) {
      health_->throw_if_broken();
      std::this_thread::sleep_for(kPause);
    }
    tensors_.clear();
  }

  bool done() const override {
    if (recorded_ || complete_.load(std::memory_order_acquire)) return true;
    if (health_->broken() || !has_ended()) return false;
    if (health_->broken()) return false;  // the communicator was aborted in the meantime, which also ends the operation
    complete_.store(true, std::memory_order_release);
    return true;
  }

  // Tell the record about the operation, or about all operations of a graph.
  void note_start(FlightRecorder& recorder) const {
    for (const auto& ticket : tickets_) recorder.started(ticket);
  }
  void note_end(FlightRecorder& recorder, bool well) const {
    for (const auto& ticket : tickets_) recorder.finished(ticket, well);
  }

  std::string what_;
  std::vector<FlightRecorder::Ticket> tickets_;
  Clock::time_point launched_ = Clock::now();
  Event ended_;
  bool recorded_ = false;  // captured into a graph, which owns its memory, and whose replays are watched instead

 private:
  c10::cuda::CUDAStream current_stream() const {
    return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device_));
  }

  // Work of the waiting stream, which reuses their memory if they are freed now, comes after the operation. Another
  // stream that they may belong to knows nothing of it.
  void release_tensors() {
    if (current_stream() != launched_from_) {
      for (const auto& tensor : tensors_) tensor.record_stream(current_stream().unwrap());
    }
    tensors_.clear();
  }

  // A failed kernel leaves an error that every later CUDA call reports. The group fails with the first one.
  bool has_ended() const {
    try {
      return ended_.query();
    } catch (const std::exception& error) {
      health_->fail(std::make_exception_ptr(CommError(CommError::Kind::kSystem, what_ + ": " + reason(error))));
      return false;
    }
  }

  std::vector<at::Tensor> tensors_;  // until the operation is waited for
  std::shared_ptr<Health> health_;
  int device_;
  c10::cuda::CUDAStream launched_from_;
  mutable std::atomic<bool> complete_{false};
};

Group::Group(Member member, ncclComm_t comm, std::shared_ptr<FlightRecorder> recorder,
             std::optional<c10::cuda::CUDAStream> stream)
    : member_(std::move(member)),
      stream_(stream ? *stream
                     : c10::cuda::getStreamFromPool(/*isHighPriority=*/true,
                                                    static_cast<c10::DeviceIndex>(member_.device))),
      recorder_(std::move(recorder)),
      record_(recorder_->add_group(member_.group)) {
  handle_->comm = comm;
  watcher_ = std::thread([this] { watch(); });
}

// Waits for all launched operations, up to their timeout, because peers rely on them.
Group::~Group() {
  finish_operations();
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  watcher_.join();
  leave();
}

// The watching thread ends operations that are late.
void Group::finish_operations() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return in_flight_.empty(); });
}

void Group::leave() noexcept {
  if (aborting_.joinable()) return aborting_.join();
  const std::lock_guard lock(handle_->mutex);
  const ncclComm_t comm = std::exchange(handle_->comm, nullptr);
  const DeviceScope scope(static_cast<c10::DeviceIndex>(member_.device));
  const bool left = !health_->broken() && settle(comm, ncclCommFinalize(comm), Clock::now() + kLeave) == ncclSuccess;
  const ncclResult_t ended = left ? ncclCommDestroy(comm) : ncclCommAbort(comm);
  if (ended != ncclSuccess) log_warning() << "leaving " << describe() << ": NCCL says: " << ncclGetErrorString(ended);
}

std::string Group::describe() const {
  return member_.group + ", rank " + std::to_string(member_.rank) + " of " + std::to_string(member_.size);
}

Work Group::launch(const Call& call, std::vector<at::Tensor> tensors, const Body& body, const Origin* origin) {
  const std::lock_guard launching(handle_->mutex);
  const auto device = static_cast<c10::DeviceIndex>(member_.device);
  const DeviceScope scope(device);
  const auto current = c10::cuda::getCurrentCUDAStream(device);
  auto operation = std::make_shared<InFlight>(health_, member_.device, phalanx::describe(call), std::move(tensors),
                                              origin != nullptr ? origin->stream : current);
  operation->recorded_ = origin == nullptr && is_recording(current);
  if (operation->recorded_) {
    operation->what_ += " in a graph, of " + describe();
  } else {
    operation->tickets_ = {origin != nullptr ? origin->ticket : recorder_->launched(*record_, call)};
    operation->what_ += " #" + std::to_string(operation->tickets_[0].sequence) + " of " + describe();
  }
  if (health_->broken()) return Work(std::move(operation));  // throws when it is waited for
  launch_now(operation, body, origin);
  if (health_->broken()) {
    operation->note_end(*recorder_, false);
  } else if (operation->recorded_) {
    add_to_graph(current, shared_from_this(), call);
  } else {
    add_in_flight(operation);
  }
  return Work(std::move(operation));
}

void Group::add_in_flight(std::shared_ptr<InFlight> operation) {
  {
    const std::lock_guard lock(mutex_);
    in_flight_.push_back(std::move(operation));
  }
  changed_.notify_all();
}

// The caller must not hold the lock.
Group::Operations Group::in_flight() {
  const std::lock_guard lock(mutex_);
  return in_flight_;
}

void Group::watch_replay(const std::vector<Call>& calls) {
  const std::lock_guard launching(handle_->mutex);
  const auto device = static_cast<c10::DeviceIndex>(member_.device);
  const DeviceScope scope(device);
  const auto current = c10::cuda::getCurrentCUDAStream(device);
  auto operation =
      std::make_shared<InFlight>(health_, member_.device, std::string(), std::vector<at::Tensor>(), current);
  for (const auto& call : calls) operation->tickets_.push_back(recorder_->launched(*record_, call));
  const auto number = [](const FlightRecorder::Ticket& ticket) { return " #" + std::to_string(ticket.sequence); };
  operation->what_ = "a replay of a graph, from " + phalanx::describe(calls.front()) +
                     number(operation->tickets_.front()) + " to" + number(operation->tickets_.back()) + " of " +
                     describe();
  operation->note_start(*recorder_);
  try {
    operation->ended_.record(current);
  } catch (const std::exception& error) {
    abort(std::make_exception_ptr(CommError(CommError::Kind::kSystem, operation->what_ + ": " + reason(error))),
          in_flight());
    operation->note_end(*recorder_, false);
    return;
  }
  add_in_flight(std::move(operation));
}

void Group::launch_now(const std::shared_ptr<InFlight>& operation, const Body& body, const Origin* origin) {
  const std::string& what = operation->what_;
  const auto abort_with = [&](std::exception_ptr error) {
    Operations running = in_flight();
    running.push_back(operation);  // NCCL may have enqueued it
    abort(std::move(error), std::move(running));
  };
  try {
    if (origin != nullptr) {
      origin->launched.block(stream_);
    } else {
      Event given;
      given.record(c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(member_.device)));
      given.block(stream_);
    }
    const c10::cuda::CUDAStreamGuard on_stream(stream_);
    operation->note_start(*recorder_);
    try {
      body.calls(handle_->comm, stream_.stream());
    } catch (const CommError& error) {
      throw CommError(error.kind(), what + ": " + error.what());
    }
    const ncclResult_t taken = settle(handle_->comm, ncclInProgress, after(member_.timeout));
    if (taken == ncclInProgress) throw late(what, member_.timeout);
    if (taken != ncclSuccess) throw explain(what, taken, handle_->comm);
    body.after(handle_->comm, stream_.stream());
    operation->ended_.record(stream_);
  } catch (const CommError&) {
    abort_with(std::current_exception());
  } catch (const std::exception& error) {
    abort_with(std::make_exception_ptr(CommError(CommError::Kind::kSystem, what + ": " + reason(error))));
  }
}

void Group::fail(const std::string& what, ncclResult_t result) {
  const std::string where = what + " of " + describe();
  abort(std::make_exception_ptr(result == ncclInProgress ? late(where, member_.timeout)
                                                         : explain(where, result, handle_->comm)),
        in_flight());
  health_->throw_if_broken();
  throw std::logic_error(where + ": failed without an error");
}

// The caller must hold the handle's mutex. ncclCommAbort() ends the operations on the device at once, but returns only
// when all graphs with operations of the communicator are destroyed. Until then, this rank needs the mutexes to find
// the error, so a thread without any makes the call. Its result would not help to find the cause. The thread has the
// running operations, and with them their tensors: others who find the error free what they have of them at once, but
// kernels may write to the memory until NCCL returns.
void Group::abort(std::exception_ptr error, Operations running) {
  if (!health_->fail(std::move(error))) return;
  const auto end = [comm = std::exchange(handle_->comm, nullptr),
                    device = static_cast<c10::DeviceIndex>(member_.device), running = std::move(running)] {
    const DeviceScope scope(device);
    (void)ncclCommAbort(comm);
  };
  try {
    aborting_ = std::thread(end);
  } catch (const std::system_error&) {  // there are too many threads, so others find the error late
    end();
  }
}

// Never throws: a CUDA error becomes the error of the group (InFlight::has_ended). This thread may be the last that has
// an operation.
void Group::watch() {
  (void)cudaSetDevice(member_.device);  // sets the device of this thread, for NCCL calls
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || !in_flight_.empty(); });
    if (stopped_) return;
    const bool some_ended = look();
    if (in_flight_.empty()) changed_.notify_all();
    if (!some_ended) changed_.wait_for(lock, kLook, [&] { return stopped_; });
  }
}

// The caller must hold the lock. Operations run on one stream, so they end in order, and graphs are waited for in this
// order, too. Operations of a broken group end with it.
bool Group::look() {
  if (!health_->broken() && !in_flight_.front()->done()) end_late(*in_flight_.front());
  bool some_ended = false;
  while (!in_flight_.empty() && (in_flight_.front()->done() || health_->broken())) {
    auto& first = *in_flight_.front();
    first.note_end(*recorder_, first.done());
    in_flight_.pop_front();
    some_ended = true;
  }
  return some_ended;
}

// Does not interrupt a call in progress, which has its own deadline.
void Group::end_late(const InFlight& first) {
  const std::unique_lock calling(handle_->mutex, std::try_to_lock);
  if (!calling || handle_->comm == nullptr) return;
  const Seconds waited = Clock::now() - first.launched_;
  ncclResult_t later = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(handle_->comm, &later);
  if (asked == ncclSuccess && later != ncclSuccess && later != ncclInProgress) {
    abort(std::make_exception_ptr(explain(first.what_, later, handle_->comm)), in_flight_);
  } else if (waited > member_.timeout) {
    abort(std::make_exception_ptr(late(first.what_, waited)), in_flight_);
  }
}

}  // namespace phalanx::nccl
