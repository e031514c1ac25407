// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/rows_file.h"

#include <ATen/ops/sort.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <numeric>
#include <span>
#include <system_error>
#include <tuple>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/read_at.h"
#include "framework/base/storage/safetensors.h"
#include "framework/base/storage/safetensors_writer.h"
#include "framework/ps/sparse/sparse_keys.h"

namespace phalanx::ps {
namespace {

constexpr const char* kKeys = "keys";
constexpr const char* kRows = "rows";

using Entry = SafetensorsFile::Entry;

// Returns null if the file has no entry with this name, dtype and number of dimensions.
const Entry* find(const SafetensorsFile& file, const char* name, at::ScalarType dtype, std::size_t dimensions) {
  const auto found = std::ranges::find(file.entries(), name, &Entry::name);
  if (found == file.entries().end() || found->dtype != dtype || found->shape.size() != dimensions) return nullptr;
  return &*found;
}

}  // namespace

void write_rows_file(const std::string& path, SparseTable& table) {
  const auto of_servers = table.rows_of_servers();
  const auto total = std::accumulate(of_servers.begin(), of_servers.end(), std::int64_t{0});
  const std::int64_t dim = table.spec().dim;
  SafetensorsWriter writer(path, {{kKeys, at::kLong, {total}}, {kRows, at::kFloat, {total, dim}}});
  std::int64_t written = 0;
  for (std::size_t server = 0; server < of_servers.size(); ++server) {
    table.for_each_block(server, [&](const SparseTable::Rows& block) {
      written += block.keys.numel();
      if (written > total) throw Error(path + ": table " + table.spec().name + " got more rows while they were read");
      writer.append(0, block.keys);
      writer.append(1, block.numbers.narrow(1, 0, dim));
    });
  }
  if (written < total) throw Error(path + ": table " + table.spec().name + " lost rows while they were read");
  writer.finish();
}

RowsFile::RowsFile(const std::string& path, const TableSpec& spec)
    : path_(path), dim_(spec.dim), initial_(spec.sparse) {
  const SafetensorsFile file(path);
  const Entry* const keys = find(file, kKeys, at::kLong, 1);
  const Entry* const rows = find(file, kRows, at::kFloat, 2);
  if (keys == nullptr || rows == nullptr || keys->shape[0] != rows->shape[0]) {
    refuse("it has no int64 \"keys\" [r] and float32 \"rows\" [r, dim]");
  }
  if (rows->shape[1] != dim_) {
    refuse("its rows have " + std::to_string(rows->shape[1]) + " numbers, the rows of the table have " +
           std::to_string(dim_));
  }
  std::tie(keys_, places_) = at::sort(file.read(*keys));
  check_keys(spec);
  rows_begin_ = file.offset_of(*rows);
  file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_.valid()) throw DataError(path + ": " + std::generic_category().message(errno));
}

void RowsFile::refuse(const std::string& why) const {
  throw DataError(path_ + ": does not hold the rows of the table: " + why);
}

void RowsFile::check_keys(const TableSpec& spec) const {
  const SparseKeys known(spec, 1);
  const std::span keys(keys_.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(rows()));
  if (keys.empty()) return;
  for (const auto key : {keys.front(), keys.back()}) {
    if (!known.has(key)) refuse("the table has no key " + std::to_string(key));
  }
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice != keys.end()) refuse("key " + std::to_string(*twice) + " appears twice");
}

void RowsFile::read(const at::Tensor& keys, const at::Tensor& rows) const {
  const std::span known(keys_.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(this->rows()));
  const auto* const places = places_.const_data_ptr<std::int64_t>();
  const auto* const wanted = keys.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < keys.numel(); ++i) {
    float* const row = rows.mutable_data_ptr<float>() + i * dim_;
    const auto found = std::ranges::lower_bound(known, wanted[i]);
    if (found == known.end() || *found != wanted[i]) {
      initial_.fill(wanted[i], {row, static_cast<std::size_t>(dim_)});
      continue;
    }
    read_row(places[found - known.begin()], row);
  }
}

void RowsFile::read_row(std::int64_t place, float* row) const {
  const auto bytes = static_cast<std::size_t>(dim_) * sizeof(float);
  const auto offset = static_cast<std::int64_t>(rows_begin_ + static_cast<std::uint64_t>(place) * bytes);
  const auto count = read_at(file_.get(), row, bytes, offset);
  if (count == static_cast<std::int64_t>(bytes)) return;
  throw DataError(path_ + ": row " + std::to_string(place) + " cannot be read: " +
                  (count < 0 ? std::generic_category().message(errno) : "the file has become shorter"));
}

}  // namespace phalanx::ps
