#include "framework/ps/shard.h"

#include <algorithm>
#include <utility>

#include "framework/ps/dense_shard.h"

namespace phalanx::ps {

void Shard::push(const Push& push, const at::Tensor& payload) {
  apply(push, std::max<std::int64_t>(0, version_ - push.based_on), payload);
  ++version_;
  if (!push.ticks) return;
  clocks_.tick(push.client, push.clock);
  let_all_read_that_may();
}

bool Shard::may_read(std::int64_t clock) const {
  return spec_.staleness == kAsynchronous || clocks_.slowest() >= clock - spec_.staleness;
}

void Shard::let_read(const Waiting& waiting) {
  const std::int64_t behind = std::max<std::int64_t>(0, waiting.clock - clocks_.slowest());
  ++staleness_seen_[std::min<std::size_t>(behind, kStalenessPlaces - 1)];
  waiting.read(behind, read(waiting.client, waiting.payload));
}

void Shard::let_all_read_that_may() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto waiting = next++;
    if (!may_read(waiting->clock)) continue;
    let_read(*waiting);
    waiting_.erase(waiting);
  }
}

void Shard::pull(int client, std::int64_t clock, at::Tensor payload, Read read) {
  clocks_.join(client, clock);
  Waiting waiting{.client = client, .clock = clock, .payload = std::move(payload), .read = std::move(read)};
  if (may_read(clock)) {
    let_read(waiting);
  } else {
    waiting_.push_back(std::move(waiting));
  }
}

void Shard::leave(int client) {
  std::erase_if(waiting_, [client](const Waiting& waiting) { return waiting.client == client; });
  clocks_.leave(client);
  let_all_read_that_may();
}

std::unique_ptr<Shard> make_shard(const TableSpec& spec, int shard, int shards) {
  return std::make_unique<DenseShard>(spec, shard, shards);
}

}  // namespace phalanx::ps
