// SPDX-License-Identifier: Apache-2.0
#include "framework/base/cores.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tools/doctor/machine.h"

namespace phalanx::doctor {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kTurns = 4000;  // turns per sample
constexpr int kSamples = 9;

// Waits until the ball is `turn`, then sets it to the next number. Yields from time to time, because the other side may
// have to share the core.
void take_turn(std::atomic<int>& ball, int turn) {
  for (int spins = 1; ball.load(std::memory_order_acquire) != turn; ++spins) {
    if (spins % 10'000 == 0) std::this_thread::yield();
  }
  ball.store(turn + 1, std::memory_order_release);
}

double round_trip_ns(int first, int second) {
  alignas(128) std::atomic<int> ball{0};
  constexpr int kAll = 2 * kTurns * kSamples;
  const std::jthread other([&] {
    stay_on_cores({second});
    for (int turn = 1; turn < kAll; turn += 2) take_turn(ball, turn);
  });
  std::array<double, kSamples> samples{};
  std::jthread([&] {
    stay_on_cores({first});
    for (int sample = 0; sample < kSamples; ++sample) {
      const auto start = Clock::now();
      for (int turn = 0; turn < kTurns; ++turn) take_turn(ball, 2 * (sample * kTurns + turn));
      samples[static_cast<std::size_t>(sample)] = Seconds(Clock::now() - start).count() * 1e9 / kTurns;
    }
  }).join();
  std::ranges::sort(samples);
  return samples[kSamples / 2];
}

}  // namespace

std::vector<CoreLink> measure_cores(int most) {
  const auto cores = allowed_cores();
  std::vector<CoreLink> links;
  const int others = static_cast<int>(cores.size()) - 1;
  const int count = std::min(most, others);
  for (int i = 0; i < count; ++i) {
    const int second = cores[static_cast<std::size_t>(others - i * others / count)];
    links.push_back({cores.front(), second, round_trip_ns(cores.front(), second)});
  }
  std::ranges::sort(links, {}, &CoreLink::round_trip_ns);
  return links;
}

double measure_copy_gb_s() {
  std::vector<char> from(64 << 20, 1), to(from.size(), 2);
  std::array<double, 5> samples{};
  for (auto& sample : samples) {
    const auto start = Clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    sample = static_cast<double>(from.size()) / Seconds(Clock::now() - start).count() / 1e9;
    from[0] = to[1];
  }
  std::ranges::sort(samples);
  return samples[samples.size() / 2];
}

}  // namespace phalanx::doctor
