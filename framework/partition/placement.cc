// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/placement.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <charconv>
#include <string_view>

#include "framework/base/checked_product.h"

namespace phalanx {
namespace {

// Parses a number and the character after it, and returns that character if it is one of `ends`, else 0.
char take_number(std::string_view& text, std::int64_t& number, std::string_view ends) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return ends.find('$') == std::string_view::npos ? '\0' : '$';
  const char next = text.front();
  if (ends.find(next) == std::string_view::npos) return 0;
  text.remove_prefix(1);
  return next;
}

// Returns true if the runs lie within the dimension and the whole has a countable number of elements.
bool is_possible(const Placement& placement) {
  if (placement.dim >= static_cast<std::int64_t>(placement.shape.size())) return false;
  std::int64_t left = placement.shape[static_cast<std::size_t>(placement.dim)];
  const std::int64_t size = left;
  for (const auto& range : placement.ranges) {
    if (range.count > left || range.begin > size - range.count) return false;
    left -= range.count;
  }
  return checked_product(placement.shape).has_value();
}

bool parse(std::string_view text, Placement& placement) {
  if (take_number(text, placement.dim, ":") == 0) return false;
  for (char next = ','; next == ',';) {
    Placement::Range range;
    if (take_number(text, range.begin, "+") == 0) return false;
    next = take_number(text, range.count, ",/");
    if (next == 0) return false;
    placement.ranges.push_back(range);
  }
  for (char next = 'x'; next == 'x';) {
    std::int64_t size = 0;
    next = take_number(text, size, "x$");
    if (next == 0) return false;
    placement.shape.push_back(size);
  }
  return text.empty() && is_possible(placement);
}

}  // namespace

std::vector<std::int64_t> Placement::part_shape() const {
  auto part = shape;
  auto& size = part.at(static_cast<std::size_t>(dim));
  size = 0;
  for (const auto& range : ranges) size += range.count;
  return part;
}

at::Tensor Placement::take(const at::Tensor& whole) const {
  TORCH_CHECK(whole.sizes().equals(shape), "a part of a tensor of shape ", at::IntArrayRef(shape),
              " was requested from one of shape ", whole.sizes());
  at::Tensor part = at::empty(part_shape(), whole.options());
  const at::NoGradGuard no_grad;
  std::int64_t begin = 0;
  for (const auto& range : ranges) {
    part.narrow(dim, begin, range.count).copy_(whole.narrow(dim, range.begin, range.count));
    begin += range.count;
  }
  return part;
}

void Placement::put(const at::Tensor& whole, const at::Tensor& part) const {
  const at::NoGradGuard no_grad;
  std::int64_t begin = 0;
  for (const auto& range : ranges) {
    whole.narrow(dim, range.begin, range.count).copy_(part.narrow(dim, begin, range.count));
    begin += range.count;
  }
}

std::string to_text(const Placement& placement) {
  std::string text = "@" + std::to_string(placement.dim);
  char mark = ':';
  for (const auto& range : placement.ranges) {
    text += mark + std::to_string(range.begin) + "+" + std::to_string(range.count);
    mark = ',';
  }
  mark = '/';
  for (const auto size : placement.shape) {
    text += mark + std::to_string(size);
    mark = 'x';
  }
  return text;
}

bool take_placement(std::string& name, Placement& placement) {
  const auto at = name.rfind('@');
  if (at == std::string::npos) return false;
  Placement found;
  if (!parse(std::string_view(name).substr(at + 1), found)) return false;
  placement = std::move(found);
  name.resize(at);
  return true;
}

Placement::Range nearly_equal_part(std::int64_t size, int rank, int ranks) {
  const std::int64_t begin = size * rank / ranks, end = size * (rank + 1) / ranks;
  return {begin, end - begin};
}

}  // namespace phalanx
