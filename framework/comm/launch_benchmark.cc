// SPDX-License-Identifier: Apache-2.0
// Measures the cost to the caller of launching an asynchronous operation, without the operation itself:
//   bazel run //framework/comm:launch_benchmark
#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>
#include <vector>

#include "framework/comm/operations/flight_recorder.h"
#include "framework/comm/operations/operation_queue.h"

namespace phalanx {
namespace {

const Call kCall{.elements = 1000, .op = Op::kAllReduce, .dtype = c10::ScalarType::Float};

// Launches an operation that runs in the caller's wait().
void launch_and_wait(benchmark::State& state) {
  OperationQueue queue;
  const auto group = queue.recorder().add_group("world");
  for (auto _ : state) queue.launch(*group, kCall, [] {}).wait();
}
BENCHMARK(launch_and_wait);

// Launches 64 operations, as many as a step has buckets. Waiting for them is not timed.
void launch(benchmark::State& state, bool progress_thread) {
  constexpr int kBuckets = 64;
  OperationQueue queue;
  if (progress_thread) queue.start_progress_thread();
  const auto group = queue.recorder().add_group("world");
  std::vector<Work> works(kBuckets);
  while (state.KeepRunningBatch(kBuckets)) {
    for (auto& work : works) work = queue.launch(*group, kCall, [] {});
    state.PauseTiming();
    wait_all(works);
    state.ResumeTiming();
  }
}
BENCHMARK_CAPTURE(launch, without_progress_thread, false);
BENCHMARK_CAPTURE(launch, with_progress_thread, true);

// Launches to a progress thread that sleeps and must be woken. Timed manually, because pausing the timer costs as much.
void launch_to_a_sleeping_thread(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  OperationQueue queue;
  queue.start_progress_thread();
  const auto group = queue.recorder().add_group("world");
  for (auto _ : state) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // the thread sleeps after some 50 us
    const auto start = Clock::now();
    Work work = queue.launch(*group, kCall, [] {});
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
    work.wait();
  }
}
BENCHMARK(launch_to_a_sleeping_thread)->UseManualTime();

// Measures the part of the flight recorder in the cost of an operation.
void record(benchmark::State& state, bool whole) {
  FlightRecorder recorder;
  const auto group = recorder.add_group("world");
  for (auto _ : state) {
    const auto ticket = recorder.launched(*group, kCall);
    if (whole) recorder.started(ticket);
    recorder.finished(ticket, true);
  }
}
BENCHMARK_CAPTURE(record, launched_and_finished, false);
BENCHMARK_CAPTURE(record, launched_started_and_finished, true);

}  // namespace
}  // namespace phalanx

BENCHMARK_MAIN();
