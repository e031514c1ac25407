// SPDX-License-Identifier: Apache-2.0
// Statistics of values that are spread over ranks: no model, only collectives.
// Two ranks: mpirun -np 2 statistics, or srun, torchrun, or alone
#include <phalanx/phalanx.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>

using phalanx::Reduction;

int main() {
  phalanx::World world = phalanx::init();
  phalanx::Communicator& ranks = world.communicator();

  // Each rank has measured a different number of values.
  torch::manual_seed(world.rank());
  const torch::Tensor values = 5 + 2 * torch::randn({100'000 * (world.rank() + 1)}, torch::kDouble);

  // Count, sum and sum of squares in one operation.
  torch::Tensor sums =
      torch::stack({torch::full({}, values.numel(), torch::kDouble), values.sum(), values.pow(2).sum()});
  ranks.all_reduce(sums, Reduction::kSum).wait();
  const double count = sums[0].item<double>(), mean = sums[1].item<double>() / count;
  const double deviation = std::sqrt(sums[2].item<double>() / count - mean * mean);

  // Two operations at a time: both are launched before the first wait().
  torch::Tensor least = values.min(), most = values.max();
  phalanx::Work first = ranks.all_reduce(least, Reduction::kMin), second = ranks.all_reduce(most, Reduction::kMax);
  first.wait();
  second.wait();

  // Only rank 0 needs the histogram.
  torch::Tensor histogram = torch::histc(values, /*bins=*/10, /*min=*/0, /*max=*/10);
  ranks.reduce(histogram, Reduction::kSum, /*root=*/0).wait();
  if (world.rank() > 0) return 0;
  std::printf("%.0f values of %d ranks: mean %.2f, deviation %.2f, from %.1f to %.1f\n", count, world.size(), mean,
              deviation, least.item<double>(), most.item<double>());
  for (int bin = 0; bin < 10; ++bin) {
    const double share = histogram[bin].item<double>() / count;
    std::printf("%2d to %2d %5.1f %%\n", bin, bin + 1, 100 * share);
  }
}
