// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/tuning/measure.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>

#include "framework/base/quantile.h"
#include "framework/collectives/algorithm.h"
#include "framework/collectives/selection/rule.h"
#include "framework/comm/operations/arguments.h"

namespace phalanx {
namespace {

constexpr int kRounds = 5;
constexpr double kSampleUs = 300;  // approximate time of a sample of short operations
constexpr std::int64_t kMaxRepeats = 50;
constexpr double kHopeless = 3;

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Replaces each value by its maximum over the ranks.
void take_slowest(Communicator& group, std::span<double> values) {
  const at::Tensor tensor = at::zeros({static_cast<std::int64_t>(values.size())}, at::kDouble);
  std::ranges::copy(values, tensor.mutable_data_ptr<double>());
  group.all_reduce(tensor, Reduction::kMax).wait();
  std::copy_n(tensor.const_data_ptr<double>(), values.size(), values.begin());
}

// Returns an operation whose tensors are in memory of the group. Operations with parts have equal ones.
Operation make_operation(Communicator& group, Op op, std::int64_t bytes) {
  const auto elements = std::max<std::int64_t>(1, bytes / static_cast<std::int64_t>(sizeof(float)));
  const auto part_elements = std::max<std::int64_t>(1, elements / group.size());
  const auto tensor = [&](std::int64_t count) { return group.allocate({count}, at::kFloat); };
  const auto whole = [&] { return tensor(part_elements * group.size()); };
  switch (op) {
    case Op::kBroadcast:
      return checked_broadcast(group, tensor(elements), 0);
    case Op::kReduce:
      return checked_reduce(group, tensor(elements), Reduction::kSum, 0);
    case Op::kAllReduce:
      return checked_all_reduce(group, tensor(elements), Reduction::kSum);
    default:
      break;
  }
  const at::Tensor parts = whole(), part = tensor(part_elements);
  switch (op) {
    case Op::kReduceScatter:
      return checked_reduce_scatter(group, part, parts, Reduction::kSum, {});
    case Op::kAllGather:
      return checked_all_gather(group, parts, part, {});
    case Op::kGather:
      return checked_gather(group, parts, part, 0, {});
    case Op::kScatter:
      return checked_scatter(group, part, parts, 0, {});
    case Op::kAllToAll:
      return checked_all_to_all(group, whole(), parts, {}, {});
    default:
      throw std::logic_error("not an operation with several algorithms: " + std::string(to_string(op)));
  }
}

// A way to perform the operation, with its samples.
struct Candidate {
  std::size_t number;  // in candidates_of()
  std::function<Work()> launch;
  std::int64_t repeats = 1;  // operations in one sample
  std::vector<double> samples{};

  // Measures one sample: microseconds of one operation.
  void sample(Communicator& group) {
    group.barrier().wait();
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < repeats; ++i) launch().wait();
    samples.push_back(microseconds_since(start) / static_cast<double>(repeats));
  }
};

// Tensors are measured in memory of the group, where ways for private memory make no difference.
std::vector<const Algorithm*> algorithms_of(Op op) {
  auto all = Algorithms::global().of(op);
  std::erase_if(all, [](const Algorithm* algorithm) { return algorithm->only_private_memory; });
  return all;
}

std::vector<Candidate> suitable(const CommunicatorPtr& group, Op op, const Operation& operation) {
  std::vector<Candidate> candidates{{.number = 0, .launch = [=] { return group->launch(operation); }}};
  const auto algorithms = algorithms_of(op);
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    const Algorithm& algorithm = *algorithms[i];
    if (!suits(algorithm, *group, operation)) continue;
    candidates.push_back({.number = i + 1, .launch = [=, &algorithm] { return launch(group, algorithm, operation); }});
  }
  return candidates;
}

// Measures each candidate once, after a first time that does not count. Returns the slowest rank's times.
std::vector<double> measure_once(Communicator& group, std::vector<Candidate>& candidates) {
  std::vector<double> times;
  for (auto& candidate : candidates) {
    candidate.sample(group);
    candidate.samples.clear();
    candidate.sample(group);
    times.push_back(candidate.samples.front());
  }
  take_slowest(group, times);
  return times;
}

}  // namespace

std::vector<std::string> candidates_of(Op op) {
  std::vector<std::string> names{kNative};
  for (const auto* algorithm : algorithms_of(op)) names.push_back(algorithm->name);
  return names;
}

std::vector<double> measure_candidates(const CommunicatorPtr& group, Op op, std::int64_t bytes) {
  const Operation operation = make_operation(*group, op, bytes);
  auto candidates = suitable(group, op, operation);
  std::vector<double> result(candidates_of(op).size());
  const auto first = measure_once(*group, candidates);
  const double hopeless = *std::ranges::min_element(first) * kHopeless;
  std::vector<Candidate*> remaining;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    auto& candidate = candidates[i];
    result[candidate.number] = first[i];
    if (first[i] > hopeless) continue;
    const auto repeats = std::llround(kSampleUs / std::max(first[i], 0.01));
    candidate.repeats = std::clamp<std::int64_t>(repeats, 1, kMaxRepeats);
    candidate.samples.clear();
    remaining.push_back(&candidate);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < remaining.size(); ++i) {
      remaining[(i + static_cast<std::size_t>(round)) % remaining.size()]->sample(*group);
    }
  }
  for (auto* candidate : remaining) {
    take_slowest(*group, candidate->samples);
    result[candidate->number] = median(candidate->samples);
  }
  return result;
}

}  // namespace phalanx
