// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/flight_recorder.h"

#include <algorithm>
#include <chrono>

#include "framework/comm/operations/place.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace phalanx {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Reads the cheapest clock available, because it is read three times per operation. Its unit is determined when records
// are read.
std::int64_t now_ticks() {
#if defined(__x86_64__)
  return static_cast<std::int64_t>(__rdtsc());
#else
  return now_ns();
#endif
}

}  // namespace

std::string_view to_string(FlightRecorder::State state) {
  switch (state) {
    case FlightRecorder::State::kLaunched:
      return "launched";
    case FlightRecorder::State::kRunning:
      return "running";
    case FlightRecorder::State::kDone:
      return "done";
    case FlightRecorder::State::kFailed:
      return "failed";
  }
  return "";
}

// An entry of the ring. `number` guards the other fields: it is 0 while they are written. Every field is atomic, so
// that a reader never sees half of one.
struct FlightRecorder::Entry {
  std::atomic<std::uint64_t> number{0};
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<Group*> group{nullptr};
  std::atomic<std::int64_t> elements{0};
  std::atomic<std::uint64_t> detail{0};
  std::atomic<std::int32_t> peer{0}, tag{0};
  std::atomic<Op> op{Op::kNone};
  std::atomic<c10::ScalarType> dtype{c10::ScalarType::Undefined};
  std::atomic<Reduction::Kind> reduction{Reduction::kSum};
  std::atomic<State> state{State::kLaunched};
  std::atomic<std::int64_t> launched{0}, started{0}, finished{0};
  std::atomic<const char*> file{nullptr};  // of the place; the compiler's, so it is never freed
  std::atomic<std::uint32_t> line{0};
};

FlightRecorder::FlightRecorder()
    : entries_(std::make_unique<Entry[]>(kEntries)), start_ns_(now_ns()), start_ticks_(now_ticks()) {}
FlightRecorder::~FlightRecorder() = default;

std::shared_ptr<FlightRecorder::Group> FlightRecorder::add_group(std::string name) {
  auto group = std::make_shared<Group>(std::move(name));
  const std::lock_guard lock(mutex_);
  // Removes groups that are gone and that no entry names any more.
  std::erase_if(groups_, [this](const auto& old) {
    return old.use_count() == 1 && std::none_of(entries_.get(), entries_.get() + kEntries, [&](const Entry& entry) {
             return entry.group.load(std::memory_order_relaxed) == old.get();
           });
  });
  groups_.push_back(group);
  return group;
}

FlightRecorder::Ticket FlightRecorder::launched(Group& group, const Call& call) {
  const Ticket ticket{.number = launched_.fetch_add(1, std::memory_order_relaxed) + 1,
                      .sequence = group.launched_.fetch_add(1, std::memory_order_relaxed) + 1};
  Entry& entry = entries_[ticket.number % kEntries];
  // A reader that sees any of the new values also sees the 0.
  constexpr auto release = std::memory_order_release;
  entry.number.store(0, std::memory_order_relaxed);
  entry.sequence.store(ticket.sequence, release);
  entry.group.store(&group, release);
  entry.elements.store(call.elements, release);
  entry.detail.store(call.detail, release);
  entry.peer.store(call.peer, release);
  entry.tag.store(call.tag, release);
  entry.op.store(call.op, release);
  entry.dtype.store(call.dtype, release);
  entry.reduction.store(call.reduction, release);
  entry.state.store(State::kLaunched, release);
  entry.launched.store(now_ticks(), release);
  entry.started.store(0, release);
  entry.finished.store(0, release);
  entry.file.store(current_place.file_name(), release);
  entry.line.store(current_place.line(), release);
  entry.number.store(ticket.number, release);
  return ticket;
}

void FlightRecorder::started(const Ticket& ticket) {
  Entry& entry = entries_[ticket.number % kEntries];
  if (entry.number.load(std::memory_order_relaxed) != ticket.number) return;  // overwritten
  entry.started.store(now_ticks(), std::memory_order_relaxed);
  entry.state.store(State::kRunning, std::memory_order_relaxed);
}

void FlightRecorder::finished(const Ticket& ticket, bool well) {
  Entry& entry = entries_[ticket.number % kEntries];
  if (entry.number.load(std::memory_order_relaxed) != ticket.number) return;
  if (entry.started.load(std::memory_order_relaxed) == 0) {  // a message for which no thread had to wait
    entry.started.store(entry.launched.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  entry.finished.store(now_ticks(), std::memory_order_relaxed);
  entry.state.store(well ? State::kDone : State::kFailed, std::memory_order_relaxed);
}

std::vector<FlightRecorder::Record> FlightRecorder::records() const {
  constexpr auto acquire = std::memory_order_acquire;  // so that the number is read again after all other fields
  const std::lock_guard lock(mutex_);
  const double ns_per_tick =
      static_cast<double>(now_ns() - start_ns_) / std::max<std::int64_t>(1, now_ticks() - start_ticks_);
  const auto to_ns = [&](std::int64_t ticks) {
    return ticks == 0 ? 0 : static_cast<std::int64_t>(static_cast<double>(ticks - start_ticks_) * ns_per_tick);
  };
  std::vector<Record> all;
  for (std::size_t i = 0; i < kEntries; ++i) {
    const Entry& entry = entries_[i];
    const auto number = entry.number.load(std::memory_order_acquire);
    if (number == 0) continue;
    const Group* group = entry.group.load(acquire);
    Record record{.number = number,
                  .sequence = entry.sequence.load(acquire),
                  .group = {},
                  .call = {.elements = entry.elements.load(acquire),
                           .detail = entry.detail.load(acquire),
                           .peer = entry.peer.load(acquire),
                           .tag = entry.tag.load(acquire),
                           .op = entry.op.load(acquire),
                           .dtype = entry.dtype.load(acquire),
                           .reduction = entry.reduction.load(acquire)},
                  .state = entry.state.load(acquire),
                  .launched_ns = to_ns(entry.launched.load(acquire)),
                  .started_ns = to_ns(entry.started.load(acquire)),
                  .finished_ns = to_ns(entry.finished.load(acquire))};
    const auto line = entry.line.load(acquire);
    const char* const file = entry.file.load(acquire);
    if (entry.number.load(std::memory_order_relaxed) != number) continue;
    if (line > 0) record.place = std::string(file) + ":" + std::to_string(line);
    record.group = group->name();
    all.push_back(std::move(record));
  }
  std::ranges::sort(all, {}, &Record::number);
  return all;
}

}  // namespace phalanx
