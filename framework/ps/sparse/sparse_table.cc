// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/sparse_table.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "framework/ps/sparse/sparse_batch.h"
#include "framework/ps/sparse/sparse_shard.h"

namespace phalanx::ps {
namespace {

constexpr std::int64_t kMaxRecordBytes = 32 << 20;  // per request, so that servers handle others in between

// Rows in a block of bytes in the format of record_transfer().
struct Records {
  at::Tensor bytes;
  at::Tensor keys;     // [rows]
  at::Tensor numbers;  // [rows, numbers]

  Records(std::int64_t rows, std::int64_t width) {
    const std::int64_t key_bytes = rows * static_cast<std::int64_t>(sizeof(std::int64_t));
    bytes = at::empty({key_bytes + rows * width * static_cast<std::int64_t>(sizeof(float))}, at::kByte);
    keys = bytes.narrow(0, 0, key_bytes).view(at::kLong);
    numbers = bytes.narrow(0, key_bytes, bytes.numel() - key_bytes).view(at::kFloat).view({rows, width});
  }
};

// A pull. Its rows are copied to the caller once all servers have answered.
class Pulling final : public Work::State {
 public:
  Pulling(Work inner, SparseBatch batch, at::Tensor rows)
      : inner_(std::move(inner)), batch_(std::move(batch)), rows_(std::move(rows)) {}

  void wait() override {
    if (handed_out_) return;
    inner_.wait();
    batch_.get(rows_.mutable_data_ptr<float>());
    handed_out_ = true;
  }

  // True only after wait(), which copies the rows.
  bool done() const override { return handed_out_; }

 private:
  Work inner_;
  SparseBatch batch_;
  at::Tensor rows_;
  bool handed_out_ = false;
};

}  // namespace

SparseTable::SparseTable(Client& client, const TableSpec& spec)
    : client_(client), layout_(spec, static_cast<int>(client.servers())), numbers_(SparseShard::numbers(spec)) {
  table_ = client.create(spec);
}

void SparseTable::refuse(const std::string& why) const {
  throw std::invalid_argument("sparse table \"" + spec().name + "\": " + why);
}

void SparseTable::check_keys(const at::Tensor& keys) const {
  if (keys.scalar_type() != at::kLong || !keys.is_cpu() || !keys.is_contiguous()) {
    refuse("keys must be int64, dense and on the CPU");
  }
}

std::vector<std::int64_t> SparseTable::row_sizes(const at::Tensor& keys) const {
  auto sizes = keys.sizes().vec();
  sizes.push_back(spec().dim);
  return sizes;
}

void SparseTable::check(const at::Tensor& keys, const at::Tensor& rows) const {
  check_keys(keys);
  if (rows.sizes() != row_sizes(keys) || rows.scalar_type() != at::kFloat || !rows.is_cpu() || !rows.is_contiguous()) {
    refuse("rows must be float32, dense, on the CPU, and of the shape of the keys with " + std::to_string(spec().dim) +
           " elements each");
  }
}

// Sends requests to the servers that have keys of the batch. A tick goes to all servers.
Work SparseTable::launch(const SparseBatch& batch, const Header& request) {
  std::vector<Client::Part> parts;
  for (std::size_t server = 0; server < batch.blocks().size(); ++server) {
    const auto& block = batch.blocks()[server];
    if (block.rows == 0 && !request.ticks()) continue;
    const Transfer transfer = sparse_transfer(request.verb, block.rows, spec().dim);
    (pulls(request.verb) ? bytes_.pulled : bytes_.pushed) +=
        static_cast<std::int64_t>(transfer.sent + transfer.returned);
    parts.push_back({.server = server, .tensor = block.bytes, .transfer = transfer, .rows = block.rows});
  }
  return client_.launch(table_, std::move(parts), request);
}

Work SparseTable::pull(const at::Tensor& keys, at::Tensor rows, const PullOptions& options) {
  check(keys, rows);
  SparseBatch batch(layout_, spec().dim, keys);
  const Header request{.verb = Verb::kPull,
                       .flags = static_cast<std::uint8_t>(options.read_only ? kReadOnly : 0),
                       .clock = table_.clock_};
  Work inner = launch(batch, request);
  return Work(std::make_shared<Pulling>(std::move(inner), std::move(batch), std::move(rows)));
}

at::Tensor SparseTable::pull(const at::Tensor& keys) {
  at::Tensor rows = at::empty(row_sizes(keys), at::kFloat);
  pull(keys, rows).wait();
  return rows;
}

Work SparseTable::push(const at::Tensor& keys, const at::Tensor& updates, const Client::PushOptions& options) {
  check(keys, updates);
  SparseBatch batch(layout_, spec().dim, keys);
  batch.put(updates.const_data_ptr<float>());
  const Header request = Client::request_of(Verb::kPush, options, table_.clock_);
  if (options.tick) ++table_.clock_;
  return launch(batch, request);
}

std::int64_t SparseTable::max_records() const {
  const auto bytes =
      static_cast<std::int64_t>(sizeof(std::int64_t)) + numbers_ * static_cast<std::int64_t>(sizeof(float));
  return std::max<std::int64_t>(1, kMaxRecordBytes / bytes);
}

void SparseTable::for_each_block(std::size_t server, const std::function<void(const Rows& block)>& visit) {
  std::int64_t most = std::min<std::int64_t>(1024, max_records());
  const auto answered = std::make_shared<Header>();  // holds the place to continue from
  do {
    const Records block(most, numbers_);
    client_
        .launch(table_,
                {{.server = server,
                  .tensor = block.bytes,
                  .transfer = record_transfer(Verb::kReadRows, most, numbers_),
                  .rows = static_cast<std::uint32_t>(most),
                  .done = [answered](const Header& reply) { *answered = reply; }}},
                {.verb = Verb::kReadRows, .clock = answered->clock})
        .wait();
    visit({.keys = block.keys.narrow(0, 0, answered->rows), .numbers = block.numbers.narrow(0, 0, answered->rows)});
    most = std::min(2 * most, max_records());
  } while (answered->clock >= 0);
}

SparseTable::Rows SparseTable::read_rows(std::size_t server) {
  std::vector<at::Tensor> keys{at::empty({0}, at::kLong)}, numbers{at::empty({0, numbers_}, at::kFloat)};
  for_each_block(server, [&](const Rows& block) {
    keys.push_back(block.keys.clone());
    numbers.push_back(block.numbers.clone());
  });
  return {.keys = at::concat(keys), .numbers = at::concat(numbers)};
}

std::vector<std::int64_t> SparseTable::rows_of_servers() {
  std::vector<std::int64_t> rows;
  for (std::size_t server = 0; server < client_.servers(); ++server) {
    const auto answered = std::make_shared<Header>();
    client_
        .launch(table_,
                {{.server = server,
                  .tensor = at::empty({0}, at::kByte),
                  .transfer = record_transfer(Verb::kReadRows, 0, numbers_),
                  .done = [answered](const Header& reply) { *answered = reply; }}},
                {.verb = Verb::kReadRows})
        .wait();
    rows.push_back(answered->version);
  }
  return rows;
}

void SparseTable::write_rows(const Rows& rows) {
  const std::int64_t count = rows.keys.numel();
  if (rows.numbers.dim() != 2 || rows.numbers.size(0) != count || rows.numbers.size(1) != numbers_ ||
      rows.numbers.scalar_type() != at::kFloat || rows.keys.scalar_type() != at::kLong) {
    refuse("rows to write must be int64 keys [r] and float32 numbers [r, " + std::to_string(numbers_) + "]");
  }
  const at::Tensor keys = rows.keys.contiguous(), numbers = rows.numbers.contiguous();
  const auto* const all = keys.const_data_ptr<std::int64_t>();
  std::vector<std::vector<std::int64_t>> places(client_.servers());
  for (std::int64_t i = 0; i < count; ++i) {
    if (!layout_.has(all[i])) refuse("it has no key " + std::to_string(all[i]));
    places[static_cast<std::size_t>(layout_.server_of(all[i]))].push_back(i);
  }
  const auto most = static_cast<std::size_t>(max_records());
  for (std::size_t server = 0; server < places.size(); ++server) {
    const auto& mine = places[server];
    for (std::size_t begin = 0; begin < mine.size(); begin += most) {
      const auto block_rows = static_cast<std::int64_t>(std::min(most, mine.size() - begin));
      const Records block(block_rows, numbers_);
      auto* const block_keys = block.keys.mutable_data_ptr<std::int64_t>();
      auto* const block_numbers = block.numbers.mutable_data_ptr<float>();
      for (std::int64_t i = 0; i < block_rows; ++i) {
        const std::int64_t place = mine[begin + static_cast<std::size_t>(i)];
        block_keys[i] = all[place];
        std::copy_n(numbers.const_data_ptr<float>() + place * numbers_, numbers_, block_numbers + i * numbers_);
      }
      client_
          .launch(table_,
                  {{.server = server,
                    .tensor = block.bytes,
                    .transfer = record_transfer(Verb::kWriteRows, block_rows, numbers_),
                    .rows = static_cast<std::uint32_t>(block_rows)}},
                  {.verb = Verb::kWriteRows})
          .wait();
    }
  }
}

}  // namespace phalanx::ps
