// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/operation.h"

#include <algorithm>
#include <stdexcept>

namespace phalanx::bench {
namespace {

double none(int) { return 0; }
double once(int) { return 1; }
double all_but_own(int ranks) { return static_cast<double>(ranks - 1) / ranks; }
double twice_all_but_own(int ranks) { return 2 * all_but_own(ranks); }

}  // namespace

const std::vector<MeasuredOperation>& operations() {
  static const std::vector<MeasuredOperation> all = {
      {"all_reduce", Op::kAllReduce, "of each rank's tensor", false, twice_all_but_own},
      {"broadcast", Op::kBroadcast, "of each rank's tensor", false, once},
      {"reduce", Op::kReduce, "of each rank's tensor", false, once},
      {"all_gather", Op::kAllGather, "of the gathered tensor", true, all_but_own},
      {"reduce_scatter", Op::kReduceScatter, "of each rank's whole input", true, all_but_own},
      {"all_to_all", Op::kAllToAll, "of each rank's whole input", true, all_but_own},
      {"gather", Op::kGather, "of the gathered tensor", true, all_but_own},
      {"scatter", Op::kScatter, "of the tensor that is scattered", true, all_but_own},
      {"send_recv", Op::kCustom, "of one message", false, once},
      {"barrier", Op::kBarrier, "", false, none},
      {"launch", Op::kCustom, "of each rank's tensor", false, none},
  };
  return all;
}

const MeasuredOperation& find_operation(const std::string& name) {
  const auto& all = operations();
  const auto found = std::ranges::find(all, name, &MeasuredOperation::name);
  if (found == all.end()) throw std::out_of_range("there is no operation " + name);
  return *found;
}

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const auto& operation : operations()) names.emplace_back(operation.name);
  return names;
}

Sizes sizes_of(const Case& what, int ranks) {
  const auto size = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t elements = std::max<std::int64_t>(1, (what.bytes + size - 1) / size);
  if (!find_operation(what.op).partitioned) return {.whole = elements, .part = elements};
  const std::int64_t part = (elements + ranks - 1) / ranks;
  return {.whole = part * ranks, .part = part};
}

}  // namespace phalanx::bench
