// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/safetensors_writer.h"

#include <stdexcept>
#include <string_view>

namespace phalanx {

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<SafetensorsLayout::Tensor>& tensors)
    : layout_(path, tensors), file_(path) {
  file_.write(layout_.head, 0);
  for (const auto& entry : layout_.entries) next_.push_back(entry.begin);
}

void SafetensorsWriter::append(std::size_t tensor, const at::Tensor& elements) {
  const auto& entry = layout_.entries.at(tensor);
  const at::Tensor dense = elements.detach().to(at::kCPU).contiguous();
  if (dense.scalar_type() != entry.dtype || dense.nbytes() > entry.end - next_[tensor]) {
    throw std::invalid_argument("elements of tensor " + entry.name + " are of another dtype, or too many");
  }
  file_.write({static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()}, layout_.head.size() + next_[tensor]);
  next_[tensor] += dense.nbytes();
}

void SafetensorsWriter::finish() {
  for (std::size_t i = 0; i < next_.size(); ++i) {
    const auto& entry = layout_.entries[i];
    if (next_[i] != entry.end) throw std::invalid_argument("tensor " + entry.name + " lacks elements");
  }
  file_.replace();
}

}  // namespace phalanx
