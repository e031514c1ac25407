// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/sparse_cache.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

namespace phalanx::ps {
namespace {

constexpr std::size_t kMaxPushes = 8;     // pushes in flight
constexpr std::size_t kKeptBegun = 1024;  // tolerated entries of pending_ that were pushed early

}  // namespace

CachedSparseTable::CachedSparseTable(SparseTable& table, const SparseCacheOptions& options)
    : table_(table), options_(options), dim_(static_cast<std::size_t>(table.spec().dim)), rows_(2 * table.spec().dim) {
  if (options.capacity < 1 || options.capacity >= SparseIndex::kNone || options.staleness < 0) {
    throw std::invalid_argument(
        "a cache of a sparse table needs a capacity from 1 to 2^32 - 2 and a staleness of 0 or more");
  }
}

// Takes the pending update of a row, to be sent. Rows being fetched lack this update, so they will not be kept.
void CachedSparseTable::take_pending(Slot slot) {
  Entry& entry = entries_[slot];
  if (entry.pending_since == kNever) return;
  entry.pending_since = kNever;
  float* const update = rows_[slot] + dim_;
  taken_keys_.push_back(entry.key);
  taken_.insert(taken_.end(), update, update + dim_);
  std::fill_n(update, dim_, 0.0F);
  for (auto& fetch : fetches_) fetch.wanted.erase(entry.key);
}

void CachedSparseTable::send_taken(bool tick) {
  if (taken_keys_.empty() && !tick) return;
  const auto count = static_cast<std::int64_t>(taken_keys_.size());
  auto options = pending_options_;
  options.tick = tick;
  pushes_.push_back(table_.push(at::from_blob(taken_keys_.data(), {count}, at::kLong),
                                at::from_blob(taken_.data(), {count, static_cast<std::int64_t>(dim_)}, at::kFloat),
                                options));
  counts_.pushed += count;
  taken_keys_.clear();
  taken_.clear();
  finish_pushes(kMaxPushes);
}

void CachedSparseTable::finish_pushes(std::size_t most) {
  while (pushes_.size() > most) {
    Work work = std::move(pushes_.front());
    pushes_.pop_front();
    work.wait();
  }
}

void CachedSparseTable::send_all_pending() {
  for (const auto& begun : pending_) take_pending(begun.slot);
  pending_.clear();
  send_taken(false);
}

CachedSparseTable::Slot CachedSparseTable::make_room() {
  if (static_cast<std::int64_t>(index_.size()) < options_.capacity) {
    entries_.emplace_back();
    const Slot slot = rows_.add();
    std::fill_n(rows_[slot] + dim_, dim_, 0.0F);
    return slot;
  }
  const Slot slot = index_.evict().slot;
  take_pending(slot);
  ++counts_.evicted;
  return slot;
}

// Stores a row that was pulled. Updates begun since the row was requested are not included in it.
void CachedSparseTable::keep(std::int64_t key, const float* row, std::int64_t pulled_at) {
  Slot slot = index_.use(key);
  if (slot == SparseIndex::kNone) {
    slot = make_room();
    index_.insert(key, slot);
    entries_[slot] = {.key = key};
  }
  Entry& entry = entries_[slot];
  entry.pulled_at = pulled_at;
  float* const values = rows_[slot];
  std::copy_n(row, dim_, values);
  if (entry.pending_since == kNever || options_.own_updates == 0) return;
  const auto factor = static_cast<float>(options_.own_updates * pending_options_.scale);
  for (std::size_t i = 0; i < dim_; ++i) values[i] += factor * values[dim_ + i];
}

void CachedSparseTable::start_fetch(const std::vector<std::int64_t>& keys) {
  if (keys.empty()) return;
  const auto count = static_cast<std::int64_t>(keys.size());
  Fetch fetch{.keys = at::empty({count}, at::kLong),
              .rows = at::empty({count, static_cast<std::int64_t>(dim_)}, at::kFloat),
              .clock = clock(),
              .wanted = SparseIndex(count),
              .work = {}};
  std::ranges::copy(keys, fetch.keys.mutable_data_ptr<std::int64_t>());
  for (std::int64_t i = 0; i < count; ++i) fetch.wanted.insert(keys[i], static_cast<Slot>(i));
  fetch.work = table_.pull(fetch.keys, fetch.rows);  // ordered after the pushes above
  counts_.pulled += count;
  fetches_.push_back(std::move(fetch));
}

void CachedSparseTable::wait_for(Fetch& fetch) {
  try {
    fetch.work.wait();
  } catch (const std::exception&) {
    fetches_.clear();  // their rows are unknown
    throw;
  }
}

void CachedSparseTable::finish_fetches() {
  while (!fetches_.empty()) {
    Fetch& fetch = fetches_.front();  // stays in the list: keep() may evict and push another row of the same fetch
    wait_for(fetch);
    const auto* const rows = fetch.rows.const_data_ptr<float>();
    const auto* const keys = fetch.keys.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < fetch.keys.numel(); ++i) {
      if (fetch.wanted.find(keys[i]) == SparseIndex::kNone) continue;
      keep(keys[i], rows + i * dim_, fetch.clock);
    }
    fetches_.pop_front();
    send_taken(false);
  }
}

void CachedSparseTable::pull(const at::Tensor& keys, const at::Tensor& rows) {
  if (options_.staleness == 0) {
    counts_.pulled += keys.numel();
    table_.pull(keys, rows).wait();
    return;
  }
  table_.check(keys, rows);
  finish_fetches();
  const auto* const data = keys.const_data_ptr<std::int64_t>();
  auto* const to = rows.mutable_data_ptr<float>();
  const std::int64_t count = keys.numel();
  SparseIndex seen;
  std::vector<std::int64_t> missing;
  std::vector<std::int64_t> places;  // positions of missing rows
  for (std::int64_t i = 0; i < count; ++i) {
    if (i + 8 < count) index_.prefetch(data[i + 8]);
    const Slot slot = index_.use(data[i]);
    if (slot != SparseIndex::kNone && readable(slot, clock())) {
      ++counts_.hits;
      std::copy_n(rows_[slot], dim_, to + i * dim_);
      continue;
    }
    places.push_back(i);
    if (seen.find(data[i]) != SparseIndex::kNone) continue;
    seen.insert(data[i], static_cast<Slot>(missing.size()));
    missing.push_back(data[i]);
    if (slot != SparseIndex::kNone) take_pending(slot);
  }
  send_taken(false);
  if (missing.empty()) return;
  start_fetch(missing);
  // Keeping rows may evict others of the same batch, so the result is read from the fetch.
  wait_for(fetches_.back());
  const auto* const from = fetches_.back().rows.const_data_ptr<float>();
  for (const auto i : places) std::copy_n(from + seen.find(data[i]) * dim_, dim_, to + i * dim_);
  finish_fetches();
}

at::Tensor CachedSparseTable::pull(const at::Tensor& keys) {
  at::Tensor rows = at::empty(table_.row_sizes(keys), at::kFloat);
  pull(keys, rows);
  return rows;
}

void CachedSparseTable::prefetch(const at::Tensor& keys) {
  if (options_.staleness == 0) return;
  table_.check_keys(keys);
  const auto* const data = keys.const_data_ptr<std::int64_t>();
  SparseIndex seen;
  std::vector<std::int64_t> missing;
  for (std::int64_t i = 0; i < keys.numel(); ++i) {
    const Slot slot = index_.use(data[i]);
    if (slot != SparseIndex::kNone && readable(slot, clock() + 1)) continue;
    const bool coming = std::ranges::any_of(
        fetches_, [&](const Fetch& fetch) { return fetch.wanted.find(data[i]) != SparseIndex::kNone; });
    if (coming || seen.find(data[i]) != SparseIndex::kNone) continue;
    seen.insert(data[i], 0);
    missing.push_back(data[i]);
    if (slot != SparseIndex::kNone) take_pending(slot);
  }
  send_taken(false);
  start_fetch(missing);
}

void CachedSparseTable::push(const at::Tensor& keys, const at::Tensor& updates, const Client::PushOptions& options) {
  if (options_.staleness == 0) {
    counts_.pushed += keys.numel();
    pushes_.push_back(table_.push(keys, updates, options));
    finish_pushes(kMaxPushes);
    return;
  }
  table_.check(keys, updates);
  if (options.rule != pending_options_.rule || options.scale != pending_options_.scale) send_all_pending();
  pending_options_ = options;
  const auto* const data = keys.const_data_ptr<std::int64_t>();
  const auto* const from = updates.const_data_ptr<float>();
  const auto own = static_cast<float>(options_.own_updates * options.scale);
  for (std::int64_t i = 0; i < keys.numel(); ++i) {
    const float* const update = from + i * dim_;
    const Slot slot = index_.use(data[i]);
    if (slot == SparseIndex::kNone) {  // the row is not cached
      taken_keys_.push_back(data[i]);
      taken_.insert(taken_.end(), update, update + dim_);
      for (auto& fetch : fetches_) fetch.wanted.erase(data[i]);
      continue;
    }
    Entry& entry = entries_[slot];
    if (entry.pending_since == kNever) {
      entry.pending_since = clock();
      entry.begun = ++begun_;
      pending_.push_back({slot, clock(), begun_});
    }
    float* const values = rows_[slot];
    for (std::size_t column = 0; column < dim_; ++column) values[dim_ + column] += update[column];
    if (own == 0) continue;
    for (std::size_t column = 0; column < dim_; ++column) values[column] += own * update[column];
  }
  if (options.tick) {
    while (!pending_.empty() && pending_.front().clock <= clock() - options_.staleness) {
      const Begun begun = pending_.front();
      pending_.pop_front();
      if (is_pending(begun)) take_pending(begun.slot);
    }
  }
  if (pending_.size() > 2 * static_cast<std::size_t>(options_.capacity) + kKeptBegun) {
    std::erase_if(pending_, [this](const Begun& begun) { return !is_pending(begun); });
  }
  send_taken(options.tick);
}

void CachedSparseTable::flush() {
  send_all_pending();
  finish_pushes(0);
}

void CachedSparseTable::clear() {
  flush();
  for (auto& fetch : fetches_) wait_for(fetch);
  fetches_.clear();
  index_ = SparseIndex();
  rows_ = SparseRows(2 * static_cast<std::int64_t>(dim_));
  entries_.clear();
}

}  // namespace phalanx::ps
