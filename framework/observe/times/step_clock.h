// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace phalanx {

/// The phases of a training step, in this order.
enum class Phase {
  kData,           // waiting for the batch
  kForward,        // output and loss; batch norm over all ranks waits for them here and in backward
  kBackward,       // gradients; overlapped communication of a strategy adds no time
  kCommunication,  // waiting for other ranks: before, within and after the update
  kUpdate,         // the optimizer, with clipping
  kHooks,          // meters, logs, checkpoints and everything else that observes the run
};
inline constexpr int kPhases = 6;

/// Returns "data", "forward", "backward", "communication", "update" or "hooks".
std::string_view to_string(Phase phase);

/// The time that one rank spent in each phase, over some steps.
struct PhaseTimes {
  std::array<double, kPhases> seconds{};
  std::int64_t steps = 0;

  PhaseTimes operator-(const PhaseTimes& before) const;
};

class DeviceLaps;

/// Divides the time of one thread into phases, like a stopwatch with laps: each lap() assigns all time since the last
/// lap to a phase. A lap costs one reading of the clock, about 25 ns. With a device, it divides the time of the device
/// instead (DeviceLaps).
class StepClock {
 public:
  /// Called for every lap, with times of monotonic_ns() on the host.
  using Listener = std::function<void(Phase phase, std::int64_t begin_ns, std::int64_t end_ns)>;

  StepClock();
  ~StepClock();

  /// From now on, total() has the times of a device, on the stream that is current in each lap. Must be called before
  /// the first lap. Does nothing for the CPU.
  void measure_on(const c10::Device& device);

  /// While an object of this class exists, laps are ignored: the work that is launched now is being recorded as part of
  /// a graph, and is executed later.
  class Pause {
   public:
    explicit Pause(StepClock& clock) : clock_(clock), before_(std::exchange(clock.paused_, true)) {}
    ~Pause() { clock_.paused_ = before_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    StepClock& clock_;
    bool before_;
  };

  void lap(Phase phase);
  void skip();  // the time since the last lap is not part of a step
  void end_step();

  /// Returns the times of all steps so far. With a device, these are the steps up to the last measured one that it has
  /// completed: does not wait for it.
  const PhaseTimes& total();

  /// Waits until the device has completed the last step that is measured: total() then lacks the steps since, at most
  /// 16 (see DeviceLaps). Does nothing without a device.
  void synchronize();

  /// Sets the listener; {} removes it.
  void listen(Listener listener) { listener_ = std::move(listener); }

 private:
  PhaseTimes total_;
  std::int64_t last_ns_ = 0;
  Listener listener_;
  bool paused_ = false;
  std::unique_ptr<DeviceLaps> device_;  // null: times are measured on the thread
};

}  // namespace phalanx
