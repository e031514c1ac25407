#include "framework/parallel/random_rows.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <cmath>

#include "framework/base/random.h"

namespace phalanx {
namespace {

thread_local std::optional<RandomKey> innermost;

// Number `counter` of a stream: SplitMix64 (Steele, Lea, Flood 2014), which jumps to any of its numbers.
std::uint64_t number(std::uint64_t stream, std::uint64_t counter) {
  std::uint64_t z = stream + (counter + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Each number is good for two elements.
void fill_row(float* row, std::int64_t count, std::uint64_t stream, std::uint64_t dropped_below, float kept) {
  for (std::int64_t i = 0; i < count; i += 2) {
    const auto drawn = number(stream, static_cast<std::uint64_t>(i) / 2);
    row[i] = (drawn & 0xffffffff) < dropped_below ? 0 : kept;
    if (i + 1 < count) row[i + 1] = drawn >> 32 < dropped_below ? 0 : kept;
  }
}

constexpr std::int64_t kElementsAThread = 1 << 15;

}  // namespace

RandomRows::RandomRows(std::optional<RandomKey> key) : before_(innermost) { innermost = key; }

RandomRows::~RandomRows() { innermost = before_; }

std::optional<RandomKey> RandomRows::current() { return innermost; }

at::Tensor dropout_factors(const at::Tensor& like, double rate, std::uint64_t layer, const RandomKey& key) {
  at::Tensor factors = at::empty(like.sizes(), at::kFloat);
  if (factors.numel() == 0) return factors.to(like.options());
  const auto rows = factors.size(0), count = factors.numel() / rows;
  const auto dropped_below = static_cast<std::uint64_t>(std::llround(rate * 0x1p32));
  const auto kept = static_cast<float>(1 / (1 - rate));
  const std::uint64_t streams = mix(key.step, layer);
  float* const values = factors.mutable_data_ptr<float>();
  at::parallel_for(0, rows, kElementsAThread / count + 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) {
      fill_row(values + row * count, count, mix(streams, static_cast<std::uint64_t>(key.first_row + row)),
               dropped_below, kept);
    }
  });
  return factors.to(like.options());
}

}  // namespace phalanx
