// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/sparse/sparse_keys.h"

#include <limits>

#include "framework/base/error.h"
#include "framework/base/parts.h"
#include "framework/base/random.h"

namespace phalanx::ps {

SparseKeys::SparseKeys(const TableSpec& spec, int servers)
    : keys_(spec.sparse.keys > 0 ? spec.sparse.keys : std::numeric_limits<std::int64_t>::max()),
      capacity_(spec.sparse.capacity),
      servers_(servers),
      by_range_(spec.sparse.partition == "range") {
  const auto refuse = [&](const std::string& why) { throw ConfigError("sparse table \"" + spec.name + "\": " + why); };
  if (spec.dim < 1 || spec.dim > kMaxDim) refuse("dim must be from 1 to " + std::to_string(kMaxDim));
  if (spec.dtype != "float32") refuse("dtype must be float32, not " + spec.dtype);
  if (spec.elements != 0) refuse("elements must be 0: the number of rows follows from their use");
  if (by_range_ && spec.sparse.keys < 1) refuse("partition: range needs keys, the number of keys");
  if (capacity_ < servers) {
    refuse("capacity is " + std::to_string(capacity_) + ", but each of " + std::to_string(servers) +
           " servers must hold a row");
  }
}

int SparseKeys::server_of(std::int64_t key) const {
  if (servers_ == 1) return 0;
  if (!by_range_) return static_cast<int>(mix(0, static_cast<std::uint64_t>(key)) % static_cast<unsigned>(servers_));
  const std::int64_t each = keys_ / servers_, longer = keys_ % servers_;  // divided like part_begin()
  const std::int64_t in_longer = longer * (each + 1);
  return static_cast<int>(key < in_longer ? key / (each + 1) : longer + (key - in_longer) / each);
}

std::int64_t SparseKeys::capacity_of(int server) const {
  return part_begin(capacity_, servers_, server + 1) - part_begin(capacity_, servers_, server);
}

namespace {

// Returns the size of a block of rows with their keys.
std::uint64_t block_bytes(std::uint64_t rows, std::int64_t numbers) {
  const std::uint64_t one = sizeof(std::int64_t) + sizeof(float) * static_cast<std::uint64_t>(numbers);
  if (rows <= kMaxBlockBytes / one) return rows * one;
  throw Error("a request names " + std::to_string(rows) + " rows of " + std::to_string(numbers) +
              " elements; at most " + std::to_string(kMaxBlockBytes / one) + " are possible: split the batch");
}

}  // namespace

Transfer sparse_transfer(Verb verb, std::uint64_t rows, std::int64_t dim) {
  const std::uint64_t keys = sizeof(std::int64_t) * rows, values = block_bytes(rows, dim) - keys;
  return {.sent = keys + (pushes(verb) ? values : 0),
          .returned = pulls(verb) ? values : 0,
          .returned_at = keys,
          .dtype = c10::kByte};
}

Transfer record_transfer(Verb verb, std::uint64_t rows, std::int64_t numbers) {
  const std::uint64_t bytes = block_bytes(rows, numbers);
  return {.sent = pushes(verb) ? bytes : 0, .returned = pulls(verb) ? bytes : 0, .dtype = c10::kByte};
}

}  // namespace phalanx::ps
