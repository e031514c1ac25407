// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/protocol/element_ranges.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "framework/base/error.h"

namespace phalanx::ps {

ElementRanges ranges_within(const ElementRanges& ranges, std::int64_t begin, std::int64_t count) {
  ElementRanges within;
  for (const auto& range : ranges) {
    const ElementRange part{std::max(range.begin, begin) - begin, std::min(range.end, begin + count) - begin};
    if (part.begin < part.end) within.push_back(part);
  }
  return within;
}

ElementRanges ranges_of_zeros(const at::Tensor& bytes) {
  ElementRanges ranges;
  const auto* const first = bytes.const_data_ptr<std::uint8_t>();
  const auto* const last = first + bytes.numel();
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  for (const auto* begin = std::find_if(first, last, is_zero); begin != last;) {
    const auto* const end = std::find_if_not(begin, last, is_zero);
    ranges.push_back({begin - first, end - first});
    begin = std::find_if(end, last, is_zero);
  }
  return ranges;
}

std::string to_text(const ElementRanges& ranges) {
  return {reinterpret_cast<const char*>(ranges.data()), ranges.size() * sizeof(ElementRange)};
}

ElementRanges ranges_of_text(const std::string& text, std::int64_t elements) {
  if (text.size() % sizeof(ElementRange) != 0) throw Error("an update contains an incomplete range of elements");
  ElementRanges ranges(text.size() / sizeof(ElementRange));
  if (!text.empty()) std::memcpy(ranges.data(), text.data(), text.size());
  std::int64_t end = 0;
  for (const auto& range : ranges) {
    if (range.begin < end || range.end <= range.begin || range.end > elements) {
      throw Error("an update of " + std::to_string(elements) + " elements names a range from " +
                  std::to_string(range.begin) + " to " + std::to_string(range.end));
    }
    end = range.end;
  }
  return ranges;
}

SavedElements::SavedElements(const ElementRanges& ranges, const std::vector<at::Tensor>& tensors) {
  for (const auto& tensor : tensors) {
    for (const auto& [begin, end] : ranges) {
      elements_.push_back(tensor.narrow(0, begin, end - begin));
      copies_.push_back(elements_.back().clone());
    }
  }
}

void SavedElements::restore() const {
  for (std::size_t i = 0; i < elements_.size(); ++i) elements_[i].copy_(copies_[i]);
}

}  // namespace phalanx::ps
