// SPDX-License-Identifier: Apache-2.0
// Four ranks form groups, and each group has collectives of its own. Starts its ranks itself: groups
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>

using phalanx::Axis;
using phalanx::Reduction;

// Returns the sum of `value` over the ranks of the group.
std::int64_t sum(phalanx::Communicator& group, std::int64_t value) {
  torch::Tensor tensor = torch::full({1}, value, torch::kLong);
  group.all_reduce(tensor, Reduction::kSum).wait();
  return tensor.item<std::int64_t>();
}

void run(phalanx::World& world) {
  const int rank = world.rank();
  const auto all = sum(world.communicator(), rank);

  // The ranks that pass the same color are a group, ordered by their keys. A negative color is in no group.
  const phalanx::CommunicatorPtr even_or_odd = world.group(/*color=*/rank % 2, /*key=*/rank);
  const auto parity = sum(*even_or_odd, rank);
  const phalanx::CommunicatorPtr ends = world.group(rank == 0 || rank == 3 ? 0 : -1);
  const auto outer = ends ? std::to_string(sum(*ends, rank)) : "-";

  // A mesh has a group for each of its axes: here rows of two ranks, and columns of two ranks.
  const phalanx::Mesh mesh = world.mesh({{Axis::kData, 2}, {Axis::kTensor, 2}});
  const auto row = sum(*mesh.group({Axis::kTensor}), rank);
  const auto column = sum(*mesh.group({Axis::kData}), rank);

  std::ostringstream line;
  line << "rank " << rank << ": all " << all << ", parity " << parity << ", outer " << outer << ", row " << row
       << ", column " << column << "\n";
  std::cout << line.str() << std::flush;
}

int main() { phalanx::launch(4, run); }
