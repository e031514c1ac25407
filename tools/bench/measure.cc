#include "tools/bench/measure.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "framework/base/error.h"

namespace phalanx::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// One combination, with its buffer and what was measured so far.
struct Candidate {
  Row row;
  Subject* subject;
  at::Tensor tensor;
  std::int64_t repeats = 1;       // operations in one sample
  std::vector<double> samples{};  // us of one operation
};

void run_once(Candidate& candidate) {
  if (candidate.row.op == "all_reduce") {
    candidate.subject->all_reduce(candidate.tensor);
  } else if (candidate.row.op == "broadcast") {
    candidate.subject->broadcast(candidate.tensor);
  } else {
    candidate.subject->barrier();
  }
}

double run(Candidate& candidate) {
  candidate.subject->barrier();
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < candidate.repeats; ++i) run_once(candidate);
  const std::chrono::duration<double, std::micro> time = Clock::now() - start;
  return time.count() / static_cast<double>(candidate.repeats);
}

// The slowest rank's value of each, on all ranks.
void agree(Communicator& world, std::vector<double>& values) {
  at::Tensor tensor = at::zeros({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::ranges::copy(values, tensor.data_ptr<double>());
  world.all_reduce(tensor, Reduction::kMax).wait();
  std::copy_n(tensor.data_ptr<double>(), values.size(), values.begin());
}

std::vector<Candidate> candidates(const Options& options, const std::string& op, std::int64_t bytes,
                                  const Subjects& subjects) {
  const auto elements = bytes / static_cast<std::int64_t>(sizeof(float));
  std::vector<Candidate> all;
  for (const auto& name : options.backends) {
    auto& subject = *subjects.at(name);
    for (const auto& memory : options.memories) {
      const Row row{.op = op, .backend = name, .memory = memory, .ranks = subject.size(), .bytes = bytes};
      all.push_back({.row = row, .subject = &subject, .tensor = subject.allocate(memory, elements)});
      if (op == "barrier") break;  // has no memory
    }
  }
  return all;
}

void warm_up(Candidate& candidate, double budget_ms, Communicator& world) {
  for (int i = 0; i < 3; ++i) run(candidate);
  std::vector<double> time{run(candidate)};
  agree(world, time);  // all ranks must choose the same number
  candidate.repeats = std::clamp<std::int64_t>(std::llround(budget_ms * 1000 / std::max(time[0], 0.01)), 1, 20'000);
}

// Bytes over the busiest link, as nccl-tests counts them.
double bus_bytes(const Row& row) {
  const double share = static_cast<double>(row.ranks - 1) / row.ranks;
  if (row.op == "all_reduce") return 2 * share * static_cast<double>(row.bytes);
  return row.op == "broadcast" ? static_cast<double>(row.bytes) : 0;
}

double quantile(std::vector<double> samples, double q) {
  std::ranges::sort(samples);
  return samples[static_cast<std::size_t>(q * static_cast<double>(samples.size() - 1) + 0.5)];
}

Row finish(Candidate& candidate, Communicator& world) {
  agree(world, candidate.samples);
  Row row = candidate.row;
  row.p50_us = quantile(candidate.samples, 0.5);
  row.p90_us = quantile(candidate.samples, 0.9);
  row.bus_gb_s = bus_bytes(row) / row.p50_us / 1000;
  return row;
}

std::vector<Row> measure_size(const Options& options, const std::string& op, std::int64_t bytes,
                              const Subjects& subjects, Communicator& world) {
  auto all = candidates(options, op, bytes, subjects);
  for (auto& candidate : all) warm_up(candidate, options.budget_ms, world);
  for (int round = 0; round < options.rounds; ++round) {
    for (auto& candidate : all) candidate.samples.push_back(run(candidate));
  }
  std::vector<Row> rows;
  for (auto& candidate : all) rows.push_back(finish(candidate, world));
  return rows;
}

}  // namespace

Result measure(const Options& options, const Subjects& subjects, Communicator& world) {
  Options first = options;
  first.backends = {options.backends.front()};
  Result result{.rows = {}, .round_trip_ns = measure_size(first, "barrier", 0, subjects, world).front().p50_us * 1000};
  for (const auto& op : options.ops) {
    const auto sizes = op == "barrier" ? std::vector<std::int64_t>{0} : options.bytes;
    for (const auto bytes : sizes) {
      for (auto& row : measure_size(options, op, bytes, subjects, world)) result.rows.push_back(row);
    }
  }
  return result;
}

}  // namespace phalanx::bench
