// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

/// Times samples, in the ranks and in the programs next to them that call another library. This header includes nothing
/// of Phalanx, because those programs are compiled with the headers of that library alone.
namespace phalanx::bench {

/// Runs an operation the given number of times in sequence. Returns the total microseconds.
using Measure = std::function<double(std::int64_t repeats)>;

/// Returns a function that times a sequence of operations, from the first to the last.
template <class Operation>
Measure timed(Operation operation) {
  return [operation = std::move(operation)](std::int64_t repeats) {
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < repeats; ++i) operation();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  };
}

/// Returns a function that times each launch, but not the wait that follows it.
template <class Launch, class Wait>
Measure timed_launches(Launch launch, Wait wait) {
  return [launch = std::move(launch), wait = std::move(wait)](std::int64_t repeats) {
    std::chrono::duration<double, std::micro> launching{0};
    for (std::int64_t i = 0; i < repeats; ++i) {
      const auto start = std::chrono::steady_clock::now();
      launch();
      launching += std::chrono::steady_clock::now() - start;
      wait();
    }
    return launching.count();
  };
}

/// Returns a function that times round trips, each of which counts as two operations.
template <class RoundTrip>
Measure timed_round_trips(RoundTrip round_trip) {
  return [measure = timed(std::move(round_trip))](std::int64_t repeats) { return measure(repeats) / 2; };
}

}  // namespace phalanx::bench
