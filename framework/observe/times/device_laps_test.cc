// SPDX-License-Identifier: Apache-2.0
// Tests the times of phases on a (fake) device.
#include "framework/observe/times/device_laps.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "framework/testing/fake_device/streams.h"

namespace phalanx {
namespace {

using testing::Streams;

const c10::Device kDevice(c10::kCUDA, 0);

double seconds_of(const PhaseTimes& times, Phase phase) { return times.seconds[static_cast<std::size_t>(phase)]; }

// Work on the current stream that ends when `ends` is set.
void launch_work(std::atomic<bool>& ends) {
  const c10::Stream stream = c10::impl::VirtualGuardImpl(c10::kCUDA).getStream(kDevice);
  const int number = Streams::global().number_of(kDevice.index(), stream.id());
  Streams::global().launch_polled({.name = "work", .stream = number, .accesses = {}}, [&] { return ends.load(); });
}

void step(StepClock& clock) {
  clock.lap(Phase::kData);
  clock.lap(Phase::kForward);
  clock.lap(Phase::kUpdate);
  clock.end_step();
}

TEST(DeviceLaps, MeasureTheDeviceWhenTheHostRunsAhead) {
  StepClock clock;
  clock.measure_on(kDevice);
  clock.skip();
  clock.lap(Phase::kData);
  static std::atomic<bool> ends = false;  // the stream may ask until the process ends
  launch_work(ends);
  clock.lap(Phase::kForward);
  clock.lap(Phase::kBackward);
  clock.end_step();
  const auto waits = Streams::global().host_waits();
  EXPECT_EQ(clock.total().steps, 0) << "the device has not completed the step";
  EXPECT_EQ(Streams::global().host_waits(), waits);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ends = true;
  clock.synchronize();
  const PhaseTimes times = clock.total();
  EXPECT_EQ(times.steps, 1);
  EXPECT_GE(seconds_of(times, Phase::kForward), 0.03);
  EXPECT_LT(seconds_of(times, Phase::kData) + seconds_of(times, Phase::kBackward), seconds_of(times, Phase::kForward));
  EXPECT_EQ(seconds_of(times, Phase::kUpdate), 0);
}

TEST(DeviceLaps, SkipTimeBetweenSteps) {
  StepClock clock;
  clock.measure_on(kDevice);
  clock.skip();
  step(clock);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  clock.skip();
  step(clock);
  clock.synchronize();
  const PhaseTimes times = clock.total();
  EXPECT_GE(times.steps, 1);
  EXPECT_LT(seconds_of(times, Phase::kData), 0.2);
}

// The first steps end in microseconds, so that not every one is measured, and the last ones take longer.
TEST(DeviceLaps, CountForTheStepsThatAreNotMeasured) {
  StepClock clock;
  clock.measure_on(kDevice);
  clock.skip();
  for (int i = 0; i < 5000; ++i) step(clock);
  clock.synchronize();
  const auto steps = clock.total().steps;
  EXPECT_LE(steps, 5000);
  EXPECT_GE(steps, 5000 - 16);
  for (int i = 0; i < 40; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    step(clock);
  }
  clock.synchronize();
  EXPECT_EQ(clock.total().steps, 5040) << "each of the last steps is measured";
  EXPECT_GE(seconds_of(clock.total(), Phase::kData), 0.1);
}

}  // namespace
}  // namespace phalanx
