// Four ranks, as threads of this process, that talk to each other.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include <thread>
#include <vector>

#include "framework/comm/backend.h"

using namespace phalanx;

namespace {

constexpr int kRanks = 4;

void tour(const CommunicatorPtr& world) {
  const int rank = world->rank();

  // An operation returns at once; wait() ends it.
  at::Tensor gradients = at::full({1000}, rank + 1.0F);
  Work work = world->all_reduce(gradients, Reduction::kMean);
  work.wait();
  TORCH_CHECK(gradients[0].item<float>() == 2.5F);

  // Memory from allocate() is moved where it lies.
  at::Tensor all = world->allocate({kRanks * 3}, at::kLong);
  world->all_gather(all, at::full({3}, rank, at::kLong)).wait();
  TORCH_CHECK(all[11].item<std::int64_t>() == 3);

  // Uneven parts: rank r has r + 1 elements.
  const std::vector<std::int64_t> counts{1, 2, 3, 4};
  at::Tensor parts = at::empty({10});
  world->all_gather(parts, at::full({rank + 1}, rank, at::kFloat), counts).wait();
  TORCH_CHECK(parts[9].item<float>() == 3);

  // Messages: to the right, from the left.
  at::Tensor mine = at::full({5}, rank, at::kLong), theirs = at::empty({5}, at::kLong);
  Work sent = world->send(mine, (rank + 1) % kRanks);
  Work received = world->recv(theirs, (rank + kRanks - 1) % kRanks);
  received.wait();
  sent.wait();
  TORCH_CHECK(theirs[0].item<std::int64_t>() == (rank + kRanks - 1) % kRanks);

  // Groups: even and odd ranks.
  const CommunicatorPtr half = world->split(/*color=*/rank % 2, /*key=*/rank);
  at::Tensor sum = at::full({1}, rank, at::kLong);
  half->all_reduce(sum, Reduction::kSum).wait();
  TORCH_CHECK(sum.item<std::int64_t>() == (rank % 2 == 0 ? 2 : 4));
}

}  // namespace

int main() {
  const StorePtr store = make_hash_store(Seconds(60));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([=] {
      const RankInfo rank_info{.rank = rank, .size = kRanks, .local_rank = rank, .local_size = kRanks};
      tour(Backends::Choice("inproc").make(ConnectOptions{.rank_info = rank_info, .store = store}));
    });
  }
}
