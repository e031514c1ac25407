#include "framework/ps/sparse_table.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "framework/ps/sparse_batch.h"

namespace phalanx::ps {
namespace {

// A pull whose rows are handed out once all servers have answered.
class Pulling final : public Work::State {
 public:
  Pulling(Work inner, SparseBatch batch, at::Tensor rows)
      : inner_(std::move(inner)), batch_(std::move(batch)), rows_(std::move(rows)) {}

  void wait() override {
    const std::lock_guard lock(mutex_);
    if (handed_out_) return;
    inner_.wait();
    batch_.get(rows_.mutable_data_ptr<float>());
    handed_out_ = true;
  }

  // Rows are handed out in wait() alone.
  bool done() const override {
    const std::lock_guard lock(mutex_);
    return handed_out_;
  }

 private:
  mutable std::mutex mutex_;
  Work inner_;
  SparseBatch batch_;
  at::Tensor rows_;
  bool handed_out_ = false;
};

}  // namespace

SparseTable::SparseTable(Client& client, const TableSpec& spec)
    : client_(client), layout_(spec, static_cast<int>(client.servers())) {
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

// To the servers that have something of the batch; a tick goes to all of them.
Work SparseTable::launch(const SparseBatch& batch, const Header& request) {
  std::vector<Client::Part> parts;
  for (std::size_t server = 0; server < batch.blocks().size(); ++server) {
    const auto& block = batch.blocks()[server];
    if (block.rows == 0 && !request.ticks()) continue;
    parts.push_back({.server = server,
                     .tensor = block.bytes,
                     .transfer = sparse_transfer(request.verb, block.rows, spec().dim),
                     .rows = block.rows});
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

}  // namespace phalanx::ps
