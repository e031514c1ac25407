#include "datasets/sampler.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "datasets/shuffle.h"
#include "framework/base/parts.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

void require(bool condition, const std::string& what) {
  if (!condition) throw std::invalid_argument("DistributedSampler: " + what);
}

}  // namespace

DistributedSampler::DistributedSampler(const Options& options) : options_(options) {
  if (options_.parts == 0) options_.parts = options_.size;
  require(options.samples > 0, "samples must be > 0, got " + std::to_string(options.samples));
  require(options.global_batch > 0, "global_batch must be > 0, got " + std::to_string(options.global_batch));
  require(options.size > 0, "size must be > 0, got " + std::to_string(options.size));
  require(options.rank >= 0 && options.rank < options.size,
          "rank must be in [0, " + std::to_string(options.size) + "), got " + std::to_string(options.rank));
  require(options_.parts > 0 && options_.parts % options.size == 0,
          "parts must be a multiple of size, got " + std::to_string(options.parts));
  if (options.shares == nullptr) return;
  require(std::ssize(*options.shares) == options.size,
          "shares must be " + std::to_string(options.size) + ", got " + std::to_string(options.shares->size()));
  require(std::ranges::min(*options.shares) > 0, "shares must be > 0");
  require(options_.parts == options.size, "parts with shares must be size, got " + std::to_string(options_.parts));
}

std::int64_t DistributedSampler::batches() const {
  return (options_.samples - 1) / options_.global_batch + 1;  // rounded up; the usual sum could overflow
}

DistributedSampler::Share DistributedSampler::share(std::int64_t epoch, std::int64_t cursor) & {
  if (epoch < 0 || cursor < 0 || cursor >= batches()) {
    throw std::out_of_range("DistributedSampler: no batch " + std::to_string(cursor) + " in epoch " +
                            std::to_string(epoch) + ", an epoch has " + std::to_string(batches()));
  }
  order_for(epoch);
  const std::int64_t start = cursor * options_.global_batch;
  const std::int64_t rows = std::min(options_.global_batch, options_.samples - start);
  const std::int64_t first = begin_of(options_.rank, rows);
  const std::int64_t valid = begin_of(options_.rank + 1, rows) - first;
  const std::int64_t begin = start + first;
  if (valid == 0) return {.indices = {order_.data() + start, 1}, .valid = 0, .global_rows = rows, .first_row = first};
  return {.indices = {order_.data() + begin, static_cast<std::size_t>(valid)},
          .valid = valid,
          .global_rows = rows,
          .first_row = first};
}

std::int64_t DistributedSampler::begin_of(int rank, std::int64_t rows) const {
  if (options_.shares == nullptr) {
    return part_begin(rows, options_.parts, static_cast<std::int64_t>(rank) * (options_.parts / options_.size));
  }
  const auto& shares = *options_.shares;
  const auto before = std::accumulate(shares.begin(), shares.begin() + rank, std::int64_t{0});
  const auto sum = std::accumulate(shares.begin() + rank, shares.end(), before);
  return rows / sum * before + rows % sum * before / sum;  // rows * before / sum, which could overflow
}

void DistributedSampler::order_for(std::int64_t epoch) {
  if (epoch == ordered_epoch_ || (!options_.shuffle && ordered_epoch_ >= 0)) return;
  // From the identity each time, not from the order before it: an epoch must not depend on which ones came first.
  order_.resize(static_cast<std::size_t>(options_.samples));
  std::iota(order_.begin(), order_.end(), 0);
  ordered_epoch_ = epoch;
  if (!options_.shuffle) return;
  phalanx::shuffle(order_,
                   RandomStream(mix(static_cast<std::uint64_t>(options_.seed), static_cast<std::uint64_t>(epoch))));
}

}  // namespace phalanx
