// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "framework/observe/times/step_clock.h"

namespace phalanx {

/// Divides the time of a device's stream into phases. The host puts an event on the current stream at each border of
/// two phases, and reads it once the device has passed it. So a phase is the time from when the device begins it until
/// the device ends it, whenever the host launched the work. Times in which the stream waits for other streams or has
/// nothing to do count, so that the phases of a step add up to the step. Must be used by one thread at a time.
///
/// A measured step costs the host some 40 us. If steps are so short that this would be more than 1 % of their time,
/// only every n-th step is measured, and counts for n steps: itself and the n - 1 before it. n is at most 17. It is
/// a prime: work that is due every 16th step, say, would otherwise fall into all measured steps or into none.
class DeviceLaps {
 public:
  explicit DeviceLaps(const c10::Device& device) : device_(device) {}

  /// See StepClock.
  void lap(Phase phase);
  void skip();
  void end_step();

  /// Returns the times of the steps up to the last measured one that the device has completed. Does not wait for the
  /// device.
  const PhaseTimes& total();

  /// Waits until the device has passed the last border. total() then has all steps up to the last measured one; the up
  /// to n - 1 later ones are added with the next.
  void synchronize();

 private:
  struct Border {
    c10::Event event;
    std::optional<Phase> ends{};  // absent: the time before is not part of a step
    std::int64_t steps = 0;       // not 0: ends a step as well, which counts for this number of steps
  };

  void mark(std::optional<Phase> ends);
  void collect();

  c10::Device device_;
  PhaseTimes total_{};
  std::deque<Border> borders_;             // the first one has been passed
  std::vector<c10::Event> spare_;          // creating events costs more than recording them
  std::array<double, kPhases> of_step_{};  // of the step to which borders_.front() belongs
  bool measures_ = true;                   // the current step is measured
  std::int64_t since_ = 0;                 // steps since the last one that was measured
  std::int64_t interval_ = 1;
  std::int64_t step_began_ns_ = 0;
};

}  // namespace phalanx
