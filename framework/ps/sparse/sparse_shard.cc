// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/sparse_shard.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx::ps {
namespace {

constexpr std::int64_t kBlock = 256;     // keys that are looked up before their rows are accessed
constexpr std::int64_t kKeysAhead = 12;  // distance, in keys, at which entries are prefetched
constexpr std::int64_t kRowsAhead = 6;

const at::Tensor& entry_of(const NamedTensors& state, const std::string& name, at::IntArrayRef sizes,
                           c10::ScalarType dtype) {
  const auto found = std::ranges::find(state, name, &NamedTensors::value_type::first);
  if (found == state.end()) throw DataError("the state of a sparse table lacks \"" + name + "\"");
  const at::Tensor& values = found->second;
  if (values.sizes() != sizes || values.scalar_type() != dtype || !values.is_contiguous()) {
    throw DataError("the state of a sparse table has another \"" + name + "\" than this table");
  }
  return values;
}

std::string state_name(std::size_t rule) { return "rule" + std::to_string(rule) + "/state"; }

}  // namespace

std::vector<SparseShard::Rule> SparseShard::rules_of(const TableSpec& spec) {
  std::vector<Rule> rules;
  auto begin = static_cast<std::size_t>(spec.dim);
  for (const auto& text : spec.rules) {
    auto rule = config::load_as<RowRules::Choice>("rules", text, "table " + spec.name).make();
    const auto size = static_cast<std::size_t>(rule->state_size(spec.dim));
    rules.push_back({std::move(rule), begin, size});
    begin += size;
  }
  return rules;
}

std::size_t SparseShard::numbers_of(const TableSpec& spec, const std::vector<Rule>& rules) {
  return rules.empty() ? static_cast<std::size_t>(spec.dim) : rules.back().begin + rules.back().size;
}

std::int64_t SparseShard::max_bytes(const TableSpec& spec, int shard, int shards) {
  const std::int64_t capacity = SparseKeys(spec, shards).capacity_of(shard);
  const auto row = SparseRows::row_bytes(static_cast<std::int64_t>(numbers_of(spec, rules_of(spec))));
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (capacity >= SparseIndex::kNone || capacity > kMost / 4 / row) return kMost;
  return capacity * row + static_cast<std::int64_t>(SparseRows::kSlabBytes) + SparseIndex::max_bytes(capacity);
}

SparseShard::SparseShard(const TableSpec& spec, int shard, int shards)
    : Shard(spec),
      shard_(shard),
      keys_(spec, shards),
      initial_(spec.sparse),
      rules_(rules_of(spec)),
      numbers_(numbers_of(spec, rules_)),
      capacity_(keys_.capacity_of(shard)),
      max_bytes_(max_bytes(spec, shard, shards)),
      rows_(static_cast<std::int64_t>(numbers_)) {
  if (capacity_ >= SparseIndex::kNone) {
    throw ConfigError("sparse table \"" + spec.name + "\": capacity is " + std::to_string(capacity_) +
                      " for each server, which holds fewer than 2^32 rows: use more servers");
  }
}

std::int64_t SparseShard::numbers(const TableSpec& spec) {
  return static_cast<std::int64_t>(numbers_of(spec, rules_of(spec)));
}

Transfer SparseShard::transfer(const Header& request) const {
  if (request.verb == Verb::kReadRows || request.verb == Verb::kWriteRows) {
    return record_transfer(request.verb, request.rows, static_cast<std::int64_t>(numbers_));
  }
  return sparse_transfer(request.verb, request.rows, spec().dim);
}

SparseIndex::Slot SparseShard::find_or_create(std::int64_t key) {
  if (const auto slot = index_.use(key); slot != SparseIndex::kNone) return slot;
  SparseIndex::Slot slot = SparseIndex::kNone;
  if (static_cast<std::int64_t>(index_.size()) == capacity_) {
    slot = index_.evict().slot;
    ++evicted_;
  } else {
    slot = rows_.add();
  }
  index_.insert(key, slot);
  ++created_;
  float* const row = rows_[slot];
  const auto dim = static_cast<std::size_t>(spec().dim);
  initial_.fill(key, {row, dim});
  std::fill(row + dim, row + numbers_, 0.0F);
  return slot;
}

// Calls `visit(i, row)` in order. Without `create`, the row is null if it does not exist. Memory is prefetched for many
// keys at a time, which takes a tenth of the time of accessing them one after the other.
template <class Visit>
void SparseShard::for_rows(const std::int64_t* keys, std::int64_t count, bool create, const Visit& visit) {
  std::array<SparseIndex::Slot, kBlock> slots{};
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t end = std::min(count, begin + kBlock);
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + kKeysAhead < count) index_.prefetch(keys[i + kKeysAhead]);
      slots[i - begin] = create ? index_.use(keys[i]) : index_.find(keys[i]);
    }
    const std::int64_t evicted = evicted_;
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + kRowsAhead < end) {
        if (const auto ahead = slots[i + kRowsAhead - begin]; ahead != SparseIndex::kNone) rows_.prefetch(ahead);
      }
      SparseIndex::Slot slot = slots[i - begin];
      // The key may have occurred before in this block, or an eviction may have removed its row.
      if (create && (slot == SparseIndex::kNone || evicted_ != evicted)) slot = find_or_create(keys[i]);
      visit(i, slot == SparseIndex::kNone ? nullptr : rows_[slot]);
    }
  }
}

void SparseShard::check_keys(const at::Tensor& payload, std::int64_t rows, std::uint64_t bytes) const {
  const std::uint64_t there = payload.defined() ? payload.nbytes() : 0;
  if (there < bytes || (there > 0 && payload.scalar_type() != c10::kByte)) {
    throw Error("a request to table \"" + spec().name + "\" has " + std::to_string(there) + " bytes where " +
                std::to_string(bytes) + " are expected for " + std::to_string(rows) + " rows");
  }
  if (rows == 0) return;
  const auto* const keys = static_cast<const std::int64_t*>(payload.const_data_ptr());
  for (std::int64_t i = 0; i < rows; ++i) {
    if (keys_.has(keys[i]) && keys_.server_of(keys[i]) == shard_) continue;
    throw Error("table \"" + spec().name + "\" has no key " + std::to_string(keys[i]) + " on this server");
  }
}

void SparseShard::apply(const Push& push, std::int64_t staleness, const at::Tensor& payload) {
  check_keys(payload, push.rows, sparse_transfer(Verb::kPush, push.rows, spec().dim).sent);
  if (push.rows == 0) return;
  const UpdateInfo info{.client = push.client, .staleness = staleness, .clock = push.clock, .scale = push.scale};
  const Rule& rule = rules_[push.rule];
  const auto* const keys = static_cast<const std::int64_t*>(payload.const_data_ptr());
  const auto* const updates = reinterpret_cast<const float*>(keys + push.rows);
  const auto dim = static_cast<std::size_t>(spec().dim);
  for_rows(keys, push.rows, true, [&](std::int64_t i, float* row) {
    rule.rule->apply({row, dim}, {row + rule.begin, rule.size}, updates + i * dim, info);
  });
}

void SparseShard::check(const Pull& pull) const {
  check_keys(pull.payload, pull.rows, sparse_transfer(Verb::kPull, pull.rows, spec().dim).sent);
}

at::Tensor SparseShard::read(const Pull& pull) {
  if (pull.rows == 0) return at::empty({0}, at::kByte);
  const auto dim = static_cast<std::size_t>(spec().dim);
  const auto bytes = static_cast<std::int64_t>(sparse_transfer(Verb::kPull, pull.rows, spec().dim).returned);
  if (!reply_.defined() || reply_.numel() < bytes) reply_ = at::empty({bytes}, at::kByte);
  auto* const values = static_cast<float*>(reply_.mutable_data_ptr());
  for_rows(static_cast<const std::int64_t*>(pull.payload.const_data_ptr()), pull.rows, !pull.read_only,
           [&, keys = static_cast<const std::int64_t*>(pull.payload.const_data_ptr())](std::int64_t i, float* row) {
             if (row) {
               std::memcpy(values + i * dim, row, dim * sizeof(float));
             } else {
               initial_.fill(keys[i], {values + i * dim, dim});
             }
           });
  return reply_.narrow(0, 0, bytes);
}

Shard::Rows SparseShard::read_rows(std::int64_t first, std::int64_t most) {
  const auto bytes =
      static_cast<std::int64_t>(record_transfer(Verb::kReadRows, most, static_cast<std::int64_t>(numbers_)).returned);
  Rows read{.records = at::zeros({bytes}, at::kByte), .total = static_cast<std::int64_t>(index_.size())};
  auto* const keys = static_cast<std::int64_t*>(read.records.mutable_data_ptr());
  auto* const rows = reinterpret_cast<float*>(keys + most);
  read.next = index_.for_each_from(first, most, [&](std::int64_t key, SparseIndex::Slot slot) {
    keys[read.count] = key;
    std::copy_n(rows_[slot], numbers_, rows + read.count * numbers_);
    ++read.count;
  });
  return read;
}

void SparseShard::write_rows(const at::Tensor& records, std::int64_t count) {
  check_keys(records, count, record_transfer(Verb::kWriteRows, count, static_cast<std::int64_t>(numbers_)).sent);
  if (count == 0) return;
  const auto* const keys = static_cast<const std::int64_t*>(records.const_data_ptr());
  const auto* const rows = reinterpret_cast<const float*>(keys + count);
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(rows + i * numbers_, numbers_, rows_[find_or_create(keys[i])]);
}

StateDict SparseShard::state() {
  const auto count = static_cast<std::int64_t>(index_.size());
  StateDict all{{"keys", at::empty({count}, at::kLong)}, {"rows", at::empty({count, spec().dim}, at::kFloat)}};
  std::vector<std::pair<std::size_t, std::size_t>> spans{{0, static_cast<std::size_t>(spec().dim)}};  // begin, size
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].size == 0) continue;
    all.push_back({state_name(i), at::empty({count, static_cast<std::int64_t>(rules_[i].size)}, at::kFloat)});
    spans.emplace_back(rules_[i].begin, rules_[i].size);
  }
  auto* const keys = all[0].values.mutable_data_ptr<std::int64_t>();
  std::int64_t next = 0;
  index_.for_each([&](std::int64_t key, SparseIndex::Slot slot) {
    keys[next] = key;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const auto [begin, size] = spans[i];
      std::copy_n(rows_[slot] + begin, size, all[i + 1].values.mutable_data_ptr<float>() + next * size);
    }
    ++next;
  });
  return all;
}

void SparseShard::load_state(const NamedTensors& state) {
  const auto stored = std::ranges::find(state, "keys", &NamedTensors::value_type::first);
  const std::int64_t count = stored == state.end() ? 0 : stored->second.numel();
  const auto* const keys = entry_of(state, "keys", {count}, at::kLong).const_data_ptr<std::int64_t>();
  struct Source {
    const float* values;
    std::size_t begin, size;
  };
  std::vector<Source> sources{{entry_of(state, "rows", {count, spec().dim}, at::kFloat).const_data_ptr<float>(), 0,
                               static_cast<std::size_t>(spec().dim)}};
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].size == 0) continue;
    const auto name = state_name(i);
    const auto& values = entry_of(state, name, {count, static_cast<std::int64_t>(rules_[i].size)}, at::kFloat);
    sources.push_back({values.const_data_ptr<float>(), rules_[i].begin, rules_[i].size});
  }
  if (!std::all_of(keys, keys + count, [this](std::int64_t key) { return keys_.has(key); })) {
    throw DataError("the state of a sparse table has keys that table \"" + spec().name + "\" does not have");
  }
  index_ = SparseIndex();
  rows_ = SparseRows(static_cast<std::int64_t>(numbers_));
  for (std::int64_t i = 0; i < count; ++i) {
    if (keys_.server_of(keys[i]) != shard_) continue;
    float* const row = rows_[find_or_create(keys[i])];
    for (const auto& [values, begin, size] : sources) std::copy_n(values + i * size, size, row + begin);
  }
}

std::map<std::string, std::int64_t> SparseShard::counts() const {
  return {{"rows", static_cast<std::int64_t>(index_.size())}, {"rows_created", created_}, {"rows_evicted", evicted_}};
}

}  // namespace phalanx::ps
