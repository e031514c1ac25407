// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/stored_tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "framework/base/checked_product.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// Returns the end of the elements of an entry that begins at element `begin`.
std::int64_t end_of(const SafetensorsFile::Entry& entry, std::int64_t begin) {
  const auto elements = checked_product(entry.shape);
  std::int64_t end = 0;
  if (elements && !__builtin_add_overflow(begin, *elements, &end)) return end;
  throw DataError("the checkpoint has more elements of " + entry.name + " than can be counted");
}

// Removes "[A:B]" from the name and returns A, or -1 if the name does not have it.
std::int64_t take_offset(std::string& name) {
  const auto bracket = name.rfind('[');
  if (bracket == std::string::npos || !name.ends_with("]") || name.find(':', bracket) == std::string::npos) return -1;
  const auto offset = std::strtoll(name.c_str() + bracket + 1, nullptr, 10);
  name.resize(bracket);
  return offset;
}

bool is_of(const std::optional<Placement>& stored, const Placement* wanted) {
  return wanted == nullptr ? !stored.has_value() : stored == *wanted;
}

}  // namespace

StoredTensors::StoredTensors(const std::vector<SafetensorsFile>& files, const std::string& prefix) {
  for (const auto& file : files) {
    for (const auto& entry : file.entries()) {
      if (!entry.name.starts_with(prefix)) continue;
      std::string name = entry.name.substr(prefix.size());
      const auto offset = take_offset(name);
      const auto begin = std::max<std::int64_t>(0, offset);
      StoredPart piece{&file, &entry, begin, end_of(entry, begin), offset >= 0, std::nullopt};
      Placement placement;
      if (take_placement(name, placement)) piece.placement = std::move(placement);
      StoredParts& parts = tensors_[name];
      const bool again = std::ranges::any_of(parts, [&](const StoredPart& other) {
        return other.begin == piece.begin && other.end == piece.end && other.placement == piece.placement;
      });
      if (!again) parts.push_back(std::move(piece));
    }
  }
}

std::vector<std::string> StoredTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, parts] : tensors_) names.push_back(name);
  return names;
}

const StoredTensors::StoredParts& StoredTensors::parts_of(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw DataError("the checkpoint has no " + name);
  return found->second;
}

bool StoredTensors::shape(const std::string& name, std::vector<std::int64_t>& shape) const {
  const auto& piece = tensors_.at(name).front();
  const bool known = piece.placement || !piece.in_parts;
  shape = piece.placement ? piece.placement->shape : known ? piece.entry->shape : std::vector<std::int64_t>{};
  return known;
}

bool StoredTensors::has(const std::string& name, const Range& range) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return false;
  std::int64_t there = 0;
  for (const auto& piece : found->second) {
    if (!is_of(piece.placement, range.placement)) continue;
    const auto from = std::max(range.offset, piece.begin), to = std::min(range.offset + range.count, piece.end);
    there += std::max<std::int64_t>(0, to - from);
  }
  return there == range.count;
}

bool StoredTensors::read_first(const std::string& name, const Placement* placement, const at::Tensor& into) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return false;
  const auto piece = std::ranges::find_if(found->second, [&](const StoredPart& one) {
    return !one.in_parts && one.end == into.numel() && is_of(one.placement, placement);
  });
  if (piece == found->second.end()) return false;
  const at::NoGradGuard no_grad;
  into.copy_(piece->file->read(*piece->entry).view(into.sizes()));
  return true;
}

// Fills rows [n] with elements [offset, offset + n) that are stored with this placement, and returns how many of them
// there are.
std::int64_t StoredTensors::fill(const StoredParts& parts, const Placement* placement, std::int64_t offset,
                                 const at::Tensor& rows) {
  std::int64_t filled = 0;
  for (const auto& piece : parts) {
    const auto from = std::max(offset, piece.begin), to = std::min(offset + rows.numel(), piece.end);
    if (from >= to || !is_of(piece.placement, placement)) continue;
    const at::Tensor stored = piece.file->read(*piece.entry).flatten();
    rows.narrow(0, from - offset, to - from).copy_(stored.narrow(0, from - piece.begin, to - from));
    filled += to - from;
  }
  return filled;
}

// Returns the whole tensor, assembled from all placements. If it is stored without placements, the result has one
// dimension.
const at::Tensor& StoredTensors::put_together(const std::string& name) const {
  if (whole_name_ == name && whole_.defined()) return whole_;
  const StoredParts& parts = parts_of(name);
  const auto options = at::TensorOptions().dtype(parts.front().file->read(*parts.front().entry).scalar_type());
  std::int64_t there = 0, size = 0;
  if (!parts.front().placement) {
    for (const auto& piece : parts) size = std::max(size, piece.end);
    whole_ = at::empty({size}, options);
    there = fill(parts, nullptr, 0, whole_);
  } else {
    whole_ = at::empty(parts.front().placement->shape, options);
    size = whole_.numel();
    std::vector<const Placement*> done;
    for (const auto& piece : parts) {
      const auto same = [&](const Placement* other) { return piece.placement == *other; };
      if (!piece.placement || piece.placement->shape != whole_.sizes() || std::ranges::any_of(done, same)) continue;
      done.push_back(&*piece.placement);
      const at::Tensor part = at::empty(piece.placement->part_shape(), options);
      there += fill(parts, done.back(), 0, part.view(-1));
      piece.placement->put(whole_, part);
    }
  }
  if (there != size) {
    whole_.reset();
    throw DataError("the checkpoint has " + std::to_string(there) + " of the " + std::to_string(size) +
                    " elements of " + name);
  }
  whole_name_ = name;
  return whole_;
}

void StoredTensors::read(const std::string& name, const Range& range, const at::Tensor& into) const {
  const at::NoGradGuard no_grad;
  const StoredParts& parts = parts_of(name);
  const at::Tensor rows = into.is_contiguous() ? into.view(-1) : at::empty({into.numel()}, into.scalar_type());
  const auto filled = fill(parts, range.placement, range.offset, rows);
  if (filled != range.count) {
    if (range.placement == nullptr && !parts.front().placement) {
      throw DataError("the checkpoint has " + std::to_string(filled) + " of the elements " +
                      std::to_string(range.offset) + " to " + std::to_string(range.offset + range.count) + " of " +
                      name);
    }
    const at::Tensor& whole = put_together(name);
    const at::Tensor wanted =
        range.placement != nullptr ? range.placement->take(whole.view(range.placement->shape)) : whole;
    rows.copy_(wanted.flatten().narrow(0, range.offset, range.count));
  }
  if (!into.is_contiguous()) into.copy_(rows.view(into.sizes()));
}

}  // namespace phalanx
