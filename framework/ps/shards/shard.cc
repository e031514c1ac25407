// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/shards/shard.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/ps/shards/dense_shard.h"
#include "framework/ps/sparse/sparse_shard.h"

namespace phalanx::ps {

void Shard::push(const Push& push, const at::Tensor& payload) {
  if (push.rule >= spec_.rules.size()) {
    throw Error("table \"" + spec_.name + "\" has " + std::to_string(spec_.rules.size()) +
                " rules, but no rule number " + std::to_string(push.rule));
  }
  apply(push, std::max<std::int64_t>(0, version_ - push.based_on), payload);
  ++version_;
  if (!push.ticks) return;
  clocks_.tick(push.client, push.clock);
  release_reads();
}

bool Shard::may_read(std::int64_t clock) const {
  return spec_.staleness == kAsynchronous || clocks_.slowest() >= clock - spec_.staleness;
}

void Shard::release_read(const Waiting& waiting) {
  const std::int64_t behind = std::max<std::int64_t>(0, waiting.pull.clock - clocks_.slowest());
  ++staleness_seen_[std::min<std::size_t>(behind, kStalenessBins - 1)];
  waiting.read(behind, read(waiting.pull));
}

void Shard::release_reads() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto waiting = next++;
    if (!may_read(waiting->pull.clock)) continue;
    release_read(*waiting);
    waiting_.erase(waiting);
  }
}

void Shard::pull(const Pull& pull, Read read) {
  check(pull);
  if (clocks_.join(pull.client, pull.clock)) release_reads();
  Waiting waiting{.pull = pull, .read = std::move(read)};
  if (may_read(pull.clock)) {
    release_read(waiting);
  } else {
    waiting_.push_back(std::move(waiting));
  }
}

void Shard::forget_reads(int client) {
  std::erase_if(waiting_, [client](const Waiting& waiting) { return waiting.pull.client == client; });
}

void Shard::leave(int client) {
  forget_reads(client);
  clocks_.leave(client);
  release_reads();
}

at::Tensor Shard::state_tensor(std::size_t number) {
  const auto all = state();
  if (number < all.size()) return all[number].values;
  throw Error("table \"" + spec_.name + "\" keeps " + std::to_string(all.size()) + " tensors, but no tensor number " +
              std::to_string(number));
}

void Shard::load_state(const NamedTensors& values) {
  const auto state = this->state();
  if (state.size() != values.size()) {
    throw DataError("table \"" + spec_.name + "\" has " + std::to_string(state.size()) + " tensors, not " +
                    std::to_string(values.size()));
  }
  for (const auto& entry : state) {
    const auto found = std::ranges::find(values, entry.name, &NamedTensors::value_type::first);
    if (found == values.end() || found->second.sizes() != entry.values.sizes() ||
        found->second.scalar_type() != entry.values.scalar_type()) {
      throw DataError("table \"" + spec_.name + "\": tensor " + entry.name + " is missing or has another size or type");
    }
    entry.values.copy_(found->second);
  }
}

Shard::Rows Shard::read_rows(std::int64_t, std::int64_t) {
  throw Error("table \"" + spec_.name + "\" is dense: it has no rows to read");
}

void Shard::write_rows(const at::Tensor&, std::int64_t) {
  throw Error("table \"" + spec_.name + "\" is dense: it has no rows to write");
}

void Shard::resume(std::int64_t version, const std::vector<std::int64_t>& clocks) {
  if (version < 0 || static_cast<std::int64_t>(clocks.size()) != spec_.clients) {
    throw DataError("table \"" + spec_.name + "\" has " + std::to_string(spec_.clients) + " clients, not " +
                    std::to_string(clocks.size()));
  }
  version_ = version;
  clocks_.resume(clocks);
}

std::unique_ptr<Shard> make_shard(const TableSpec& spec, int shard, int shards) {
  if (spec.dim > 0) return std::make_unique<SparseShard>(spec, shard, shards);
  return std::make_unique<DenseShard>(spec, shard, shards);
}

std::int64_t max_bytes_of_shard(const TableSpec& spec, int shard, int shards) {
  if (spec.dim > 0) return SparseShard::max_bytes(spec, shard, shards);
  const auto element = static_cast<std::int64_t>(c10::elementSize(dtype_of(spec.dtype)));
  const std::int64_t elements = elements_of_shard(spec, shard, shards);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return elements > kMost / element ? kMost : elements * element;
}

}  // namespace phalanx::ps
