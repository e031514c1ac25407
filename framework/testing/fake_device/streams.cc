// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/streams.h"

#include <pthread.h>

#include <chrono>
#include <new>
#include <utility>

namespace phalanx::testing {
namespace {

constexpr auto kPause = std::chrono::microseconds(50);

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace

// Never destroyed: tensors and the thread may outlive main(). A forked child starts a thread of its own once it needs
// one.
Streams& Streams::global() {
  static auto& streams = *[] {
    static Streams* made = new Streams;
    ::pthread_atfork([] { made->mutex_.lock(); }, [] { made->mutex_.unlock(); },
                     [] {
                       made->has_thread_ = false;
                       new (&made->mutex_) std::recursive_mutex;  // it knows its owner by a number that has changed
                     });
    return made;
  }();
  return streams;
}

int Streams::number_of(int device, std::int64_t id) {
  const Lock lock(mutex_);
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i]->device == device && streams_[i]->id == id) return static_cast<int>(i);
  }
  streams_.push_back(std::make_unique<Stream>());
  streams_.back()->device = device;
  streams_.back()->id = id;
  return static_cast<int>(streams_.size()) - 1;
}

std::string Streams::name_of(int stream) const {
  const Lock lock(mutex_);
  const Stream& one = at(stream);
  const std::string of = " of device " + std::to_string(one.device);
  return one.id == 0 ? "the default stream" + of : "stream " + std::to_string(one.id) + of;
}

std::string_view Streams::kept(std::string_view name) {
  const auto found = names_.find(name);
  return found != names_.end() ? *found : *names_.emplace(name).first;
}

void Streams::report(const std::vector<Race>& races) const {
  const Race& race = races.front();
  const auto does = [&](const Moment& moment, bool writes) {
    return std::string(moment.name) + " on " + name_of(moment.stream) + (writes ? " writes" : " reads");
  };
  throw MissingWait(does(race.later, race.later_writes) + " memory that " + does(race.earlier, race.earlier_writes) +
                    ", without waiting for it: record an event after the earlier one and let the later stream wait for "
                    "it, or call record_stream() if the memory was freed");
}

void Streams::uses(const Launch& launch) {
  const Lock lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  Stream& stream = at(launch.stream);
  stream.clock.join(host_);
  const std::uint64_t time = stream.clock.tick(launch.stream);
  const Moment now{.name = kept(launch.name), .stream = launch.stream, .time = time};
  const auto races = table_.note(launch.accesses, now, stream.clock);
  if (!races.empty()) report(races);
}

bool Streams::is_ready(int stream) {
  const Lock lock(mutex_);
  if (mode_ == Mode::kDeferred) {
    step_some();
    return false;
  }
  advance(stream);
  return at(stream).items.empty();
}

void Streams::enqueue(int stream, Body body) {
  const Lock lock(mutex_);
  push_body(stream, std::move(body), mode_ == Mode::kEager);
}

void Streams::launch(const Launch& launch, Body body) {
  uses(launch);
  if (is_ready(launch.stream)) return body();
  enqueue(launch.stream, std::move(body));
}

void Streams::launch_later(const Launch& launch, Body body) {
  const Lock lock(mutex_);
  uses(launch);
  push_body(launch.stream, std::move(body), false);
}

void Streams::launch_polled(const Launch& launch, Poll poll) {
  const Lock lock(mutex_);
  uses(launch);
  push(launch.stream, {.step = std::move(poll), .awaited = nullptr, .progresses = true});
}

void Streams::push_body(int stream, Body body, bool progresses) {
  push(stream, {.step =
                    [body = std::move(body)] {
                      body();
                      return true;
                    },
                .awaited = nullptr,
                .progresses = progresses});
}

void Streams::push(int stream, Item item) {
  Stream& one = at(stream);
  if (item.progresses) ++one.progressing;
  if (item.progresses && !has_thread_) {
    has_thread_ = true;
    std::thread([this] { progress(); }).detach();
  }
  one.items.push_back(std::move(item));
}

// Runs the first item, or one that it waits for. Returns true if that changed anything.
bool Streams::step(int stream) {
  Stream& one = at(stream);
  if (one.items.empty()) return false;
  Item& first = one.items.front();
  if (first.awaited && !first.awaited->passed) return step(first.awaited->stream);
  try {
    if (first.step && !first.step()) return false;
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  if (first.progresses) --one.progressing;
  const Item done = std::move(first);  // destroyed last: it may own tensors, and freeing these asks for points
  one.items.pop_front();
  return true;
}

void Streams::advance(int stream) {
  while (step(stream)) {
  }
}

// Lets up to three items of random streams run.
void Streams::step_some() {
  for (auto turns = dice_() % 4; turns > 0; --turns) step(static_cast<int>(dice_() % streams_.size()));
}

// Runs in a thread of its own.
void Streams::progress() {
  for (;; std::this_thread::sleep_for(kPause)) {
    const Lock lock(mutex_);
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (mode_ == Mode::kDeferred && dice_() % 2 == 0) continue;
      while (streams_[i]->progressing > 0 && step(static_cast<int>(i)) && mode_ == Mode::kEager) {
      }
    }
  }
}

void Streams::Point::pass() {
  using std::chrono::nanoseconds;
  passed = true;
  passed_ns = std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Streams::PointPtr Streams::record(int stream) {
  const Lock lock(mutex_);
  Stream& one = at(stream);
  one.clock.join(host_);
  const auto point = std::make_shared<Point>(Point{.stream = stream, .clock = one.clock});
  if (one.items.empty()) {
    point->pass();
    return point;
  }
  push_body(stream, [point] { point->pass(); }, false);
  return point;
}

void Streams::wait(int stream, const PointPtr& point) {
  const Lock lock(mutex_);
  if (!point) return;
  Stream& one = at(stream);
  one.clock.join(point->clock);
  if (point->stream == stream || point->passed) return;
  push(stream, {.step = nullptr, .awaited = point, .progresses = false});
}

bool Streams::query(const PointPtr& point) {
  const Lock lock(mutex_);
  if (!point) return true;
  if (mode_ == Mode::kDeferred) {
    step_some();
    step(point->stream);
  }
  while (mode_ == Mode::kEager && !point->passed && step(point->stream)) {
  }
  if (point->passed) host_.join(point->clock);
  return point->passed;
}

void Streams::synchronize(const PointPtr& point) {
  {
    const Lock lock(mutex_);
    ++host_waits_;
  }
  complete(point);
}

std::int64_t Streams::host_waits() const {
  const Lock lock(mutex_);
  return host_waits_;
}

void Streams::count_launch() {
  const Lock lock(mutex_);
  ++launches_;
}

std::int64_t Streams::launches() const {
  const Lock lock(mutex_);
  return launches_;
}

void Streams::complete(const PointPtr& point) {
  constexpr int kSpins = 100;
  for (int tries = 0; !query(point); ++tries) {
    if (tries < kSpins) {
      std::this_thread::yield();
    } else {  // other ranks, which may have no core of their own, must make progress
      std::this_thread::sleep_for(kPause);
    }
  }
  const Lock lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Streams::synchronize_device(int device) {
  std::vector<PointPtr> points;
  {
    const Lock lock(mutex_);
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i]->device == device) points.push_back(record(static_cast<int>(i)));
    }
  }
  for (const auto& point : points) synchronize(point);
}

bool Streams::is_idle(int stream) {
  const Lock lock(mutex_);
  return at(stream).items.empty();
}

bool Streams::has_passed(const PointPtr& point) {
  const Lock lock(mutex_);
  return !point || point->passed;
}

double Streams::milliseconds_between(const PointPtr& first, const PointPtr& second) {
  const Lock lock(mutex_);
  return static_cast<double>(second->passed_ns - first->passed_ns) * 1e-6;
}

void Streams::forget(const std::byte* begin, std::size_t bytes, int stream) {
  const Lock lock(mutex_);
  table_.forget(begin, bytes, stream);
}

Streams::Mode Streams::mode() const {
  const Lock lock(mutex_);
  return mode_;
}

void Streams::set_mode(Mode mode, std::uint64_t seed) {
  for (;;) {
    const Lock lock(mutex_);
    std::size_t pending = 0;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      advance(static_cast<int>(i));
      pending += streams_[i]->items.size();
    }
    if (pending > 0) continue;
    mode_ = mode;
    dice_.seed(seed);
    return;
  }
}

}  // namespace phalanx::testing
