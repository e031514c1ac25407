// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/testing/counting_algorithms.h"

#include <map>
#include <mutex>
#include <utility>

#include "framework/collectives/algorithm.h"
#include "framework/collectives/selection/selectable_ops.h"

namespace phalanx::testing {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::pair<Op, std::string>, int> times;
};

Counts& counts() {
  static Counts all;
  return all;
}

auto counting(Op op, const std::string& name) {
  return [op, name](Communicator& group, const Operation& operation) {
    group.launch(operation).wait();
    const std::lock_guard lock(counts().mutex);
    ++counts().times[{op, name}];
  };
}

bool is_even(const Communicator&, const Operation& operation) { return operation.output.numel() % 2 == 0; }

bool add_all() {
  for (const Op op : selectable_ops()) {
    Algorithms::global().add(
        {.op = op, .name = "counting", .about = "for tests", .run = counting(op, "counting"), .suits = nullptr});
    Algorithms::global().add({.op = op,
                              .name = "counting_even",
                              .about = "for tests",
                              .run = counting(op, "counting_even"),
                              .suits = is_even});
  }
  return Algorithms::global().add({.op = Op::kBroadcast,
                                   .name = "counting_broadcast",
                                   .about = "for tests",
                                   .run = counting(Op::kBroadcast, "counting_broadcast"),
                                   .suits = nullptr});
}

const bool counting_algorithms_registered = add_all();

}  // namespace

int times_run(Op op, const std::string& algorithm) {
  const std::lock_guard lock(counts().mutex);
  return counts().times[{op, algorithm}];
}

void forget_runs() {
  const std::lock_guard lock(counts().mutex);
  counts().times.clear();
}

}  // namespace phalanx::testing
