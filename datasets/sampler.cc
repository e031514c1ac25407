// SPDX-License-Identifier: Apache-2.0
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
  if (!condition) throw std::invalid_argument("BatchSampler: " + what);
}

}  // namespace

BatchSampler::BatchSampler(const Options& options) : options_(options) {
  if (options_.parts == 0) options_.parts = options_.size;
  require(options.samples > 0, "samples must be > 0, got " + std::to_string(options.samples));
  require(options.global_batch > 0, "global_batch must be > 0, got " + std::to_string(options.global_batch));
  require(options.size > 0, "size must be > 0, got " + std::to_string(options.size));
  require(options.rank >= 0 && options.rank < options.size,
          "rank must be in [0, " + std::to_string(options.size) + "), got " + std::to_string(options.rank));
  require(options_.parts > 0 && options_.parts % options.size == 0,
          "parts must be a multiple of size, got " + std::to_string(options.parts));
  require(options.skipped >= 0, "skipped must be >= 0, got " + std::to_string(options.skipped));
  require(batches() > 0 || options.skipped > 0,
          "a global batch of " + std::to_string(options.global_batch) + " is more than the " +
              std::to_string(positions()) +
              " samples of an epoch, so that no batch is left when the last one is dropped");
  if (options.shares == nullptr) return;
  require(std::ssize(*options.shares) == options.size, "the number of shares must be " + std::to_string(options.size) +
                                                           ", got " + std::to_string(options.shares->size()));
  require(std::ranges::min(*options.shares) > 0, "shares must be > 0");
  require(options_.parts == options.size,
          "with shares, parts must be equal to size, got " + std::to_string(options_.parts));
}

std::int64_t BatchSampler::batches() const {
  const std::int64_t left = positions() - options_.skipped;
  if (left <= 0) return 0;
  if (options_.last == LastBatch::kDrop) return left / options_.global_batch;
  return (left - 1) / options_.global_batch + 1;  // rounded up; the usual formula could overflow
}

BatchSampler::Share BatchSampler::share(std::int64_t epoch, std::int64_t cursor) & {
  if (epoch < 0 || cursor < 0 || cursor >= batches()) {
    throw std::out_of_range("BatchSampler: there is no batch " + std::to_string(cursor) + " in epoch " +
                            std::to_string(epoch) + "; batches in an epoch: " + std::to_string(batches()));
  }
  const std::int64_t start = options_.skipped + cursor * options_.global_batch;
  const std::int64_t rows =
      options_.last == LastBatch::kPad ? options_.global_batch : std::min(options_.global_batch, positions() - start);
  const std::int64_t first = begin_of(options_.rank, rows);
  const std::int64_t valid = begin_of(options_.rank + 1, rows) - first;
  return {.indices = valid == 0 ? samples(epoch, start, 1) : samples(epoch, start + first, valid),
          .valid = valid,
          .global_rows = rows,
          .first_row = first};
}

// Positions beyond the end of the epoch continue at its start.
std::span<const std::int64_t> BatchSampler::samples(std::int64_t epoch, std::int64_t begin, std::int64_t count) {
  const auto window = options_.order ? options_.order->window() : options_.samples;
  const auto within = [&](std::int64_t position) {  // positions left in its window
    return std::min(window - position % window, positions() - position);
  };
  begin %= positions();
  fill(epoch, begin / window);
  if (count <= within(begin)) {
    return {order_.data() + begin % window, static_cast<std::size_t>(count)};
  }
  collected_.clear();
  while (count > 0) {
    fill(epoch, begin / window);
    const auto part = std::min(count, within(begin));
    const auto from = order_.begin() + begin % window;
    collected_.insert(collected_.end(), from, from + part);
    begin = (begin + part) % positions();
    count -= part;
  }
  return collected_;
}

std::int64_t BatchSampler::begin_of(int rank, std::int64_t rows) const {
  if (options_.shares == nullptr) {
    return part_begin(rows, options_.parts, static_cast<std::int64_t>(rank) * (options_.parts / options_.size));
  }
  const auto& shares = *options_.shares;
  const auto before = std::accumulate(shares.begin(), shares.begin() + rank, std::int64_t{0});
  const auto sum = std::accumulate(shares.begin() + rank, shares.end(), before);
  return rows / sum * before + rows % sum * before / sum;  // rows * before / sum, which could overflow
}

void BatchSampler::fill(std::int64_t epoch, std::int64_t window) {
  const bool changes = options_.shuffle || options_.order;
  if (window == window_ && (epoch == epoch_ || !changes)) return;
  epoch_ = epoch;
  window_ = window;
  if (options_.order) {
    options_.order->fill(epoch, window, order_);
    return;
  }
  // The shuffle starts from the identity, not from the order of an earlier epoch, so an epoch does not depend on which
  // epochs came first.
  order_.resize(static_cast<std::size_t>(options_.samples));
  std::iota(order_.begin(), order_.end(), 0);
  if (!options_.shuffle) return;
  phalanx::shuffle(order_,
                   RandomStream(mix(static_cast<std::uint64_t>(options_.seed), static_cast<std::uint64_t>(epoch))));
}

}  // namespace phalanx
