#include "engine/checkpoint/stored_tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdlib>

#include "framework/base/error.h"

namespace phalanx {
namespace {

std::int64_t elements(const SafetensorsFile::Entry& entry) {
  std::int64_t count = 1;
  for (const auto size : entry.shape) count *= size;
  return count;
}

// Cuts "[A:B]" off the name, and says what A is; -1: there is none.
std::int64_t take_offset(std::string& name) {
  const auto bracket = name.rfind('[');
  if (bracket == std::string::npos || !name.ends_with("]") || name.find(':', bracket) == std::string::npos) return -1;
  const auto offset = std::strtoll(name.c_str() + bracket + 1, nullptr, 10);
  name.resize(bracket);
  return offset;
}

}  // namespace

StoredTensors::StoredTensors(const std::vector<SafetensorsFile>& files, const std::string& prefix) {
  for (const auto& file : files) {
    for (const auto& entry : file.entries()) {
      if (!entry.name.starts_with(prefix)) continue;
      std::string name = entry.name.substr(prefix.size());
      const auto offset = take_offset(name);
      const auto begin = std::max<std::int64_t>(0, offset);
      tensors_[name].push_back({&file, &entry, begin, begin + elements(entry), offset < 0});
    }
  }
}

std::vector<std::string> StoredTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, runs] : tensors_) names.push_back(name);
  return names;
}

bool StoredTensors::shape(const std::string& name, std::vector<std::int64_t>& shape) const {
  const auto& run = tensors_.at(name).front();
  shape = run.whole ? run.entry->shape : std::vector<std::int64_t>{};
  return run.whole;
}

bool StoredTensors::has(const std::string& name, std::int64_t offset, std::int64_t count) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return false;
  std::int64_t there = 0;
  for (const auto& run : found->second) {
    there += std::max<std::int64_t>(0, std::min(offset + count, run.end) - std::max(offset, run.begin));
  }
  return there == count;
}

void StoredTensors::read(const std::string& name, std::int64_t offset, const at::Tensor& into) const {
  const at::NoGradGuard no_grad;
  const at::Tensor rows = into.is_contiguous() ? into.view(-1) : at::empty({into.numel()}, into.scalar_type());
  const auto end = offset + into.numel();
  std::int64_t filled = 0;
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw DataError("the checkpoint has no " + name);
  for (const auto& run : found->second) {
    const auto from = std::max(offset, run.begin), to = std::min(end, run.end);
    if (from >= to) continue;
    const at::Tensor stored = run.file->read(*run.entry).flatten();
    rows.narrow(0, from - offset, to - from).copy_(stored.narrow(0, from - run.begin, to - from));
    filled += to - from;
  }
  if (filled != into.numel()) {
    throw DataError("the checkpoint has " + std::to_string(filled) + " of the elements " + std::to_string(offset) +
                    " to " + std::to_string(end) + " of " + name);
  }
  if (!into.is_contiguous()) into.copy_(rows.view(into.sizes()));
}

NamedTensors StoredTensors::read_whole() const {
  NamedTensors all;
  for (const auto& [name, runs] : tensors_) {
    if (runs.front().whole) all.emplace_back(name, runs.front().file->read(*runs.front().entry));
  }
  return all;
}

}  // namespace phalanx
