// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Activation functions of float32 arrays, and their gradients, in the widest vectors that the processor has: SSE4,
/// AVX2 or AVX-512 on x86, NEON or SVE on ARM. The instruction set is chosen when a function is first called.
///
/// The functions handle `count` elements that lie one after the other. An output may be the same array as an input, but
/// must not overlap it otherwise. Elements are computed independently: the result for one element does not depend on
/// its place in the array or on the other elements. Thread-safe.
/// Errors are below 4 units in the last place of the largest intermediate value. Infinities and NaN follow the
/// formulas: gelu(-inf) and silu(-inf) are NaN, as LibTorch's are.
/// formulas give: gelu(-inf) and silu(-inf) are NaN, as LibTorch's are.
namespace phalanx::vector {

/// y = tanh(x)
void tanh(const float* x, float* y, std::int64_t count);

/// y = 1 / (1 + exp(-x))
void sigmoid(const float* x, float* y, std::int64_t count);

/// y = x sigmoid(x)
void silu(const float* x, float* y, std::int64_t count);

/// y = x (1 + erf(x / sqrt(2))) / 2
void gelu(const float* x, float* y, std::int64_t count);

/// y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
void gelu_tanh(const float* x, float* y, std::int64_t count);

/// result = gradient times the derivative of silu() at x
void silu_gradient(const float* gradient, const float* x, float* result, std::int64_t count);

/// result = gradient times the derivative of gelu() at x
void gelu_gradient(const float* gradient, const float* x, float* result, std::int64_t count);

/// result = gradient times the derivative of gelu_tanh() at x
void gelu_tanh_gradient(const float* gradient, const float* x, float* result, std::int64_t count);

}  // namespace phalanx::vector
