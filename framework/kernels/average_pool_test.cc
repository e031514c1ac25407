// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <vector>

#include "framework/kernels/kernel_comparison.h"
#include "framework/kernels/kernels.h"

namespace phalanx::kernels {
namespace {

struct AveragePooling {
  std::vector<std::int64_t> kernel, stride, padding;
  bool ceil_mode = false;
  bool counts_padding = true;
  std::optional<std::int64_t> divisor{};

  at::Tensor operator()(const at::Tensor& x) const {
    return at::avg_pool2d(x, kernel, stride, padding, ceil_mode, counts_padding, divisor);
  }
};

std::ostream& operator<<(std::ostream& out, const AveragePooling& p) {
  return out << "kernel " << at::IntArrayRef(p.kernel) << ", stride " << at::IntArrayRef(p.stride) << ", padding "
             << at::IntArrayRef(p.padding) << (p.ceil_mode ? ", ceil" : "")
             << (p.counts_padding ? "" : ", without padding") << (p.divisor ? ", divisor" : "");
}

// Returns the average, and its gradient from `of_y`.
template <class Function>
std::array<at::Tensor, 2> both_ways(const Function& pool, const at::Tensor& x, const at::Tensor& of_y,
                                    at::ScalarType dtype) {
  const auto leaf = x.to(dtype).detach().requires_grad_(true);
  const auto y = pool(leaf);
  return {y.detach(), torch::autograd::grad({y}, {leaf}, {of_y.to(dtype)}).at(0)};
}

template <class Function>
void expect_as_exact_as_libtorchs(const Function& pool, const at::Tensor& x) {
  const auto of_y = at::randn_like(pool(x));
  const auto exact = both_ways(pool, x, of_y, at::kDouble), theirs = both_ways(pool, x, of_y, x.scalar_type());
  const Registration registered;
  const auto ours = both_ways(pool, x, of_y, x.scalar_type());
  for (const std::size_t i : {0, 1}) {
    ASSERT_EQ(ours[i].sizes(), theirs[i].sizes());
    EXPECT_EQ(ours[i].strides(), theirs[i].strides());
    EXPECT_LE(largest_error(ours[i], exact[i]), std::max(2 * largest_error(theirs[i], exact[i]), 4 * unit_of(exact[i])))
        << (i == 0 ? "result" : "gradient");
  }
}

TEST(AveragePool, IsAsExactAsLibTorchs) {
  at::manual_seed(1);
  for (std::int64_t kernel = 1; kernel <= 4; ++kernel) {
    for (std::int64_t stride = 1; stride <= 4; ++stride) {
      for (std::int64_t padding = 0; padding <= kernel / 2; ++padding) {
        for (const std::int64_t size : {4, 15, 16, 33, 50}) {
          for (const bool ceil_mode : {false, true}) {
            const auto x = at::randn({2, 2, 7, size});
            const AveragePooling pool{{kernel, kernel}, {stride, stride}, {padding, padding}, ceil_mode, size % 2 == 0};
            SCOPED_TRACE(::testing::Message() << pool << ", width " << size);
            expect_as_exact_as_libtorchs(pool, x);
          }
        }
      }
    }
  }
}

TEST(AveragePool, TakesSizesPerAxisAndDivisors) {
  const auto x = at::randn({3, 9, 40});
  for (const AveragePooling& pool :
       {AveragePooling{{2, 3}, {1, 2}, {1, 0}}, AveragePooling{{3, 2}, {}, {0, 1}, true, false},
        AveragePooling{{2}, {2}, {1}, false, true, 3}, AveragePooling{{3}, {3}, {0}, true, false, -2},
        AveragePooling{{1, 2}, {5, 2}, {0}}}) {
    SCOPED_TRACE(::testing::Message() << pool);
    expect_as_exact_as_libtorchs(pool, x);
  }
}

// If all windows have one size, our code computes them, otherwise LibTorch's.
TEST(AveragePool, IsAdaptiveToo) {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{3, 5}, {6, 20}, {1, 1}, {2, 40}, {12, 10}, {5, 7}}) {
    const auto pool = [&](const at::Tensor& x) { return at::adaptive_avg_pool2d(x, sizes); };
    SCOPED_TRACE(::testing::Message() << at::IntArrayRef(sizes));
    expect_as_exact_as_libtorchs(pool, at::randn({2, 3, 12, 40}));
    expect_as_exact_as_libtorchs(pool, at::randn({3, 12, 40}));
  }
}

TEST(AveragePool, TakesTensorsOfAnyLayout) {
  const AveragePooling pool{{3, 3}, {2, 2}, {1, 1}};
  const auto x = at::randn({2, 4, 9, 10});
  for (const auto& layout : {x.contiguous(at::MemoryFormat::ChannelsLast), x.transpose(2, 3), x.slice(3, 0, 10, 2),
                             x.narrow(0, 0, 1).expand({3, 4, 9, 10}), x.to(at::kDouble), x.to(at::kBFloat16)}) {
    const auto of_y = at::randn_like(pool(layout));
    const auto theirs = both_ways(pool, layout, of_y, layout.scalar_type());
    const auto transposed = at::randn_like(of_y.transpose(2, 3)).transpose(2, 3);
    const auto theirs_transposed = both_ways(pool, layout, transposed, layout.scalar_type());
    const Registration registered;
    const auto ours = both_ways(pool, layout, of_y, layout.scalar_type());
    for (const std::size_t i : {0, 1}) {
      EXPECT_EQ(ours[i].strides(), theirs[i].strides());
      EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-5, 1e-6));
    }
    EXPECT_TRUE(
        at::allclose(both_ways(pool, layout, transposed, layout.scalar_type())[1], theirs_transposed[1], 1e-5, 1e-6));
  }
}

TEST(AveragePool, TakesNumbersThatAreNotFinite) {
  auto x = at::randn({1, 2, 12, 36});
  x.masked_fill_(at::rand_like(x) < 0.02, std::nan(""));
  x.masked_fill_(at::rand_like(x) < 0.02, -std::numeric_limits<double>::infinity());
  x.masked_fill_(at::rand_like(x) < 0.02, std::numeric_limits<double>::infinity());
  for (const AveragePooling& pool : {AveragePooling{{2, 2}, {2, 2}, {0, 0}}, AveragePooling{{3, 3}, {1, 1}, {1, 1}}}) {
    const auto of_y = at::randn_like(pool(x)) * pool(x);
    const auto theirs = both_ways(pool, x, of_y, at::kFloat);
    const Registration registered;
    const auto ours = both_ways(pool, x, of_y, at::kFloat);
    for (const std::size_t i : {0, 1}) EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-5, 1e-6, /*equal_nan=*/true));
  }
}

TEST(AveragePool, RefusesWhatLibTorchRefuses) {
  const Registration registered;
  const auto x = at::randn({1, 1, 4, 4});
  EXPECT_THROW(at::avg_pool2d(x, {2, 2}, {2, 2}, {2, 2}), c10::Error) << "padding above half the window";
  EXPECT_THROW(at::avg_pool2d(x, {5, 5}), c10::Error) << "a window larger than the image";
  EXPECT_THROW(at::avg_pool2d(x, {2, 2}, {}, 0, false, true, 0), c10::Error) << "divisor 0";
  EXPECT_THROW(at::avg_pool2d_backward(at::ones({1, 1, 3, 2}), x, {2, 2}, {2, 2}, 0, false, true, {}), c10::Error);
}

}  // namespace
}  // namespace phalanx::kernels
