// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "framework/testing/fake_device/access_table.h"
#include "framework/testing/fake_device/vector_clock.h"

namespace phalanx::testing {

/// Thrown by an operator that uses memory which another stream may still be using: no event, no record_stream() and no
/// wait of the host orders the two. The message names both operators and their streams.
class MissingWait : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The streams of all fake devices. Thread-safe.
///
/// Work of a stream runs in order. With Mode::kEager, it runs before the call that launches it returns, except for two
/// kinds: copies from and to pinned memory (launch_later), which stay pending until something waits for them, and work
/// behind an operation that waits for other ranks (launch_polled). With Mode::kDeferred, all work stays pending for a
/// random time: a program that lacks a wait computes something else.
///
/// In both modes, each launch is compared with the earlier accesses to its memory and throws MissingWait for a race.
/// The streams and the host have vector clocks for that. The host's clock belongs to all threads, since threads may
/// synchronize by other means: what one thread has waited for counts as known to all. A thread may use an object until
/// the process ends, so those with polled operations must never be destroyed.
class Streams {
 public:
  enum class Mode { kEager, kDeferred };
  using Body = std::function<void()>;
  using Poll = std::function<bool()>;  // returns true once the operation is complete

  /// A point in the work of a stream, such as the one that an event marks.
  struct Point {
    int stream = 0;
    VectorClock clock;
    bool passed = false;         // all work before it is complete
    std::int64_t passed_ns = 0;  // when: on the clock of the host

    void pass();
  };
  using PointPtr = std::shared_ptr<Point>;

  struct Launch {
    std::string_view name;
    int stream = 0;
    std::vector<Access> accesses;
  };

  static Streams& global();

  /// Streams of a device: 0 is the default one, 1 to kPool and kPool + 1 to 2 kPool are those of the pools with normal
  /// and with high priority.
  static constexpr std::int64_t kPool = 32;

  /// Returns the number of a stream, by which all other functions know it.
  int number_of(int device, std::int64_t id);

  /// Returns a text such as "stream 3 of device 0".
  std::string name_of(int stream) const;

  /// Notes an operator's accesses. Throws MissingWait, or the error of a body that ran later than it was launched.
  void uses(const Launch& launch);

  /// Returns true if the next operator of the stream may run in the calling thread now. Otherwise earlier work is
  /// pending, and the operator must be passed to enqueue().
  bool is_ready(int stream);
  void enqueue(int stream, Body body);

  /// Notes the accesses and runs the body in its turn.
  void launch(const Launch& launch, Body body);

  /// As launch(), but the body stays pending until something waits for it.
  void launch_later(const Launch& launch, Body body);

  /// Launches an operation that is complete when `poll` returns true. A thread calls it again and again.
  void launch_polled(const Launch& launch, Poll poll);

  PointPtr record(int stream);
  void wait(int stream, const PointPtr& point);
  bool query(const PointPtr& point);        // true: the host knows that the point has passed
  void synchronize(const PointPtr& point);  // throws the error of a body, if there was one
  void synchronize(int stream) { synchronize(record(stream)); }
  void synchronize_device(int device);

  /// Returns how often the host has waited for a device: calls of synchronize() and synchronize_device().
  std::int64_t host_waits() const;

  /// Counts something that the host has launched: an operator, a copy, or a replay of a graph.
  void count_launch();
  std::int64_t launches() const;

  /// As synchronize(), for operators that the double cannot compute later. A GPU would not make the host wait for them,
  /// so they are not among host_waits().
  void run_pending(int stream) { complete(record(stream)); }

  /// Returns true if all work of the stream is complete. The host does not wait for it.
  bool is_idle(int stream);
  /// Returns true if the point has passed, without letting work run.
  bool has_passed(const PointPtr& point);
  /// Returns the milliseconds between the times at which two points have passed.
  double milliseconds_between(const PointPtr& first, const PointPtr& second);

  /// Forgets a stream's accesses to memory, after the allocator has made sure that they are over.
  void forget(const std::byte* begin, std::size_t bytes, int stream);

  Mode mode() const;

  /// Sets the mode after running all pending work. `seed` chooses the order in Mode::kDeferred.
  void set_mode(Mode mode, std::uint64_t seed = 0);

  /// Protects the streams, and the memory, whose allocator asks for points.
  std::recursive_mutex& mutex() { return mutex_; }

 private:
  struct Item {
    Poll step;               // returns true once the item is complete
    PointPtr awaited;        // of a wait: the point
    bool progresses = true;  // the thread runs it without being waited for
  };
  struct Stream {
    int device = 0;
    std::int64_t id = 0;
    VectorClock clock;
    std::deque<Item> items;
    std::int64_t progressing = 0;  // number of items that the thread must run
  };

  std::string_view kept(std::string_view name);
  [[noreturn]] void report(const std::vector<Race>& races) const;
  void complete(const PointPtr& point);
  void push(int stream, Item item);
  void push_body(int stream, Body body, bool progresses);
  bool step(int stream);
  void advance(int stream);
  void step_some();
  void progress();
  Stream& at(int stream) { return *streams_.at(static_cast<std::size_t>(stream)); }
  const Stream& at(int stream) const { return *streams_.at(static_cast<std::size_t>(stream)); }

  mutable std::recursive_mutex mutex_;  // recursive: a body may free memory, which asks for points
  std::vector<std::unique_ptr<Stream>> streams_;
  AccessTable table_;
  VectorClock host_;
  std::set<std::string, std::less<>> names_;
  Mode mode_ = Mode::kEager;
  std::mt19937_64 dice_;
  std::exception_ptr failure_;  // of a body that ran later
  bool has_thread_ = false;
  std::int64_t host_waits_ = 0, launches_ = 0;
};

}  // namespace phalanx::testing
