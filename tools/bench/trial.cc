// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <utility>

#include "tools/bench/subject.h"

namespace phalanx::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

class TimedTrial final : public Trial {
 public:
  TimedTrial(std::function<void()> synchronize, std::function<double(std::int64_t)> measure)
      : synchronize_(std::move(synchronize)), measure_(std::move(measure)) {}

  double run(std::int64_t repeats) override {
    synchronize_();
    return measure_(repeats) / static_cast<double>(repeats);
  }

 private:
  std::function<void()> synchronize_;
  std::function<double(std::int64_t)> measure_;
};

}  // namespace

std::unique_ptr<Trial> make_trial(std::function<void()> synchronize, std::function<double(std::int64_t)> measure) {
  return std::make_unique<TimedTrial>(std::move(synchronize), std::move(measure));
}

std::function<double(std::int64_t)> timed(std::function<void()> operation) {
  return [operation = std::move(operation)](std::int64_t repeats) {
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < repeats; ++i) operation();
    return Microseconds(Clock::now() - start).count();
  };
}

std::function<double(std::int64_t)> timed_launches(std::function<void()> launch, std::function<void()> wait) {
  return [launch = std::move(launch), wait = std::move(wait)](std::int64_t repeats) {
    Microseconds launching{0};
    for (std::int64_t i = 0; i < repeats; ++i) {
      const auto start = Clock::now();
      launch();
      launching += Clock::now() - start;
      wait();
    }
    return launching.count();
  };
}

std::function<double(std::int64_t)> timed_round_trips(std::function<void()> round_trip) {
  return [measure = timed(std::move(round_trip))](std::int64_t repeats) { return measure(repeats) / 2; };
}

}  // namespace phalanx::bench
