// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/measure.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "framework/base/quantile.h"

namespace phalanx::bench {
namespace {

/// One combination, with the samples that were measured so far.
struct Candidate {
  Row row;
  std::unique_ptr<Trial> trial;
  std::int64_t repeats = 1;       // operations in one sample
  std::vector<double> samples{};  // microseconds of one operation
};

// Replaces each value by its maximum over all ranks, which is the slowest rank's.
void agree(Communicator& world, std::vector<double>& values) {
  at::Tensor tensor = at::zeros({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::ranges::copy(values, tensor.data_ptr<double>());
  world.all_reduce(tensor, Reduction::kMax).wait();
  std::copy_n(tensor.data_ptr<double>(), values.size(), values.begin());
}

bool has_memory(const std::string& op) { return find_operation(op).bytes[0] != '\0'; }

Candidate candidate(Subject& subject, const Case& what) {
  const std::int64_t bytes = has_memory(what.op) ? sizes_of(what, subject.size()).bytes() : 0;
  return {.row = {.op = what.op,
                  .backend = subject.name(),
                  .algorithm = what.algorithm,
                  .memory = has_memory(what.op) ? what.memory : "private",
                  .ranks = subject.size(),
                  .bytes = bytes},
          .trial = subject.prepare(what)};
}

/// Every combination that can run `op` with a given number of bytes, in the order of the rows.
class Field {
 public:
  Field(const Options& options, const Subjects& subjects, Communicator& world)
      : options_(options), subjects_(subjects), world_(world) {}

  double round_trip_ns() {
    std::vector<Candidate> all;
    all.push_back(candidate(*subjects_.front(), {.op = "barrier"}));
    measure(all);
    return finish(all.front()).p50_us * 1000;
  }

  void measure(const std::string& op, std::int64_t bytes, Result& result) {
    auto all = gather(op, bytes, result.absent);
    measure(all);
    for (auto& one : all) result.rows.push_back(finish(one));
  }

 private:
  void measure(std::vector<Candidate>& all) {
    for (auto& one : all) warm_up(one);
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        auto& one = all[(i + static_cast<std::size_t>(round)) % all.size()];
        one.samples.push_back(one.trial->run(one.repeats));
      }
    }
  }

  std::vector<Candidate> gather(const std::string& op, std::int64_t bytes, std::vector<Absent>& absent) {
    std::vector<Candidate> all;
    for (const auto& memory : options_.memories) {
      for (const auto& subject : subjects_) {
        for (const auto& algorithm : subject->algorithms(op)) {
          const Case what{.op = op, .algorithm = algorithm, .memory = memory, .bytes = bytes};
          const std::string why = subject->absent(what);
          if (why.empty()) all.push_back(candidate(*subject, what));
          if (!why.empty()) note({op, subject->name(), algorithm, why}, absent);
        }
      }
      if (!has_memory(op)) break;
    }
    return all;
  }

  static void note(const Absent& one, std::vector<Absent>& absent) {
    if (std::ranges::find(absent, one) == absent.end()) absent.push_back(one);
  }

  // Chooses as many operations for a sample as take the budget. Operations that also do work that they do not time,
  // such as the wait after a launch, get fewer if they take a multiple of the budget by the clock.
  void warm_up(Candidate& one) {
    constexpr std::int64_t kMost = 20'000, kGrowth = 4;
    for (int i = 0; i < 3; ++i) one.trial->run(1);
    const double budget = options_.budget_ms * 1000;
    std::int64_t wanted = kMost;
    for (one.repeats = 1;; one.repeats = std::min(one.repeats * kGrowth, wanted)) {
      const auto start = std::chrono::steady_clock::now();
      const double operation = one.trial->run(one.repeats);
      const std::chrono::duration<double, std::micro> by_clock = std::chrono::steady_clock::now() - start;
      std::vector<double> times{operation, by_clock.count()};
      agree(world_, times);  // all ranks must choose the same number
      wanted = std::clamp<std::int64_t>(std::llround(budget / std::max(times[0], 0.01)), 1, kMost);
      if (one.repeats >= wanted || times[1] > kGrowth * budget) break;
    }
    one.repeats = std::min(one.repeats, wanted);
  }

  Row finish(Candidate& one) {
    agree(world_, one.samples);
    Row row = one.row;
    row.p50_us = quantile(one.samples, 0.5);
    row.p90_us = quantile(one.samples, 0.9);
    const auto& operation = find_operation(row.op);
    const bool moves = operation.bus_factor(2) > 0;
    row.alg_gb_s = moves ? static_cast<double>(row.bytes) / row.p50_us / 1000 : 0;
    row.bus_gb_s = row.alg_gb_s * operation.bus_factor(row.ranks);
    return row;
  }

  const Options& options_;
  const Subjects& subjects_;
  Communicator& world_;
};

}  // namespace

Result measure(const Options& options, const Subjects& subjects, Communicator& world,
               const std::function<void(const Result&)>& measured) {
  Field field(options, subjects, world);
  Result result{.rows = {}, .absent = {}, .round_trip_ns = field.round_trip_ns()};
  for (const auto& op : options.ops) {
    const auto sizes = has_memory(op) ? options.bytes : std::vector<std::int64_t>{0};
    for (const auto bytes : sizes) field.measure(op, bytes, result);
    measured(result);
  }
  return result;
}

}  // namespace phalanx::bench
