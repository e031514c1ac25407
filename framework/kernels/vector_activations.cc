// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/vector_activations.h"

#include <cstddef>
#include <cstdint>

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/kernels/vector_activations.cc"
#include "framework/kernels/vector_targets.h"
// These are included after the targets are known:
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace phalanx::vector::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V constant(float value) { return hn::Set(D(), value); }

// Evaluates a polynomial by Horner's rule. The coefficient of the highest power is the first.
template <std::size_t n>
HWY_INLINE V polynomial(V x, const float (&coefficients)[n]) {
  V sum = constant(coefficients[0]);
  for (std::size_t i = 1; i < n; ++i) sum = hn::MulAdd(sum, x, constant(coefficients[i]));
  return sum;
}

// exp(x) and exp(x) - 1 for x <= 0, each to 2 units in the last place. x = n log(2) + r, where n is a whole number and
// |r| <= log(2) / 2, so that exp(x) = 2^n exp(r) (Muller, Elementary Functions, section 11). NaN gives NaN. A result
// that would be a denormal number is 0.
struct Exponential {
  V value;
  V minus_one;
};

HWY_INLINE Exponential exponential(V x) {
  constexpr float kOverTwo[] = {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
                                4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};  // (exp(r) - 1 - r) / r^2
  constexpr float kLeast = -87.33654F;  // log of the least normal float32
  const hn::RebindToSigned<D> integers;
  const V within = hn::Max(constant(kLeast), x);  // this order of arguments keeps NaN
  const V n = hn::Round(hn::Mul(within, constant(1.44269504F)));
  V r = hn::NegMulAdd(n, constant(0.693359375F), within);
  r = hn::NegMulAdd(n, constant(-2.12194440e-4F), r);
  const V minus_one = hn::MulAdd(hn::Mul(r, r), polynomial(r, kOverTwo), r);  // exp(r) - 1
  const auto exponent = hn::Add(hn::ConvertTo(integers, n), hn::Set(integers, 127));
  const V scale = hn::BitCast(D(), hn::ShiftLeft<23>(exponent));
  const auto too_small = hn::Lt(x, constant(kLeast));
  return {hn::IfThenZeroElse(too_small, hn::MulAdd(scale, minus_one, scale)),
          hn::IfThenElse(too_small, constant(-1), hn::MulAdd(scale, minus_one, hn::Sub(scale, constant(1))))};
}

HWY_INLINE V hyperbolic_tangent(V x) {
  const V e = exponential(hn::Mul(constant(-2), hn::Abs(x))).minus_one;
  return hn::CopySign(hn::Div(e, hn::Add(constant(2), e)), x);
}

// The logistic function s of x, and its derivative s (1 - s), without cancellation.
struct Logistic {
  V value;
  V slope;
};

HWY_INLINE Logistic logistic(V x) {
  const V e = exponential(hn::Neg(hn::Abs(x))).value;
  const V d = hn::Div(constant(1), hn::Add(constant(1), e));
  const V other = hn::Mul(e, d);
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(D())), other, d), hn::Mul(other, d)};
}

// Computes erf as x P(x^2) / Q(x^2), the rational approximation of Eigen (generic_fast_erf_float), and as 1 from 4 on.
HWY_INLINE V error_function(V x) {
  constexpr float kP[] = {-2.72614225801306e-10F, 2.77068142495902e-08F,  -2.10102402082508e-06F,
                          -5.69250639462346e-05F, -7.34990630326855e-04F, -2.95459980854025e-03F,
                          -1.60960333262415e-02F};
  constexpr float kQ[] = {-1.45660718464996e-05F, -2.13374055278905e-04F, -1.68282697438203e-03F,
                          -7.37332916720468e-03F, -1.42647390514189e-02F};
  const V magnitude = hn::Abs(x);
  const V square = hn::Mul(magnitude, magnitude);
  const V inside = hn::Min(hn::Div(hn::Mul(magnitude, polynomial(square, kP)), polynomial(square, kQ)), constant(1));
  const V y = hn::IfThenElse(hn::Lt(magnitude, constant(4)), inside, constant(1));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));
}

// Computes the distribution function of the standard normal distribution.
HWY_INLINE V normal_distribution(V x) {
  const V half = constant(0.5F);
  return hn::MulAdd(half, error_function(hn::Mul(x, constant(0.70710678118654752F))), half);
}

// The argument of tanh in gelu_tanh is doubled, because (1 + tanh(u)) / 2 is the logistic function of 2 u.
constexpr float kScale = 2 * 0.79788456080286536F;
constexpr float kCubic = 0.044715F;

HWY_INLINE V doubled_argument(V x) {
  return hn::MulAdd(hn::Mul(constant(kScale * kCubic), hn::Mul(x, x)), x, hn::Mul(constant(kScale), x));
}

struct Tanh {
  HWY_INLINE V operator()(V x) const { return hyperbolic_tangent(x); }
};

struct Sigmoid {
  HWY_INLINE V operator()(V x) const { return logistic(x).value; }
};

struct Silu {
  HWY_INLINE V operator()(V x) const { return hn::Mul(x, logistic(x).value); }
};

struct Gelu {
  HWY_INLINE V operator()(V x) const { return hn::Mul(x, normal_distribution(x)); }
};

struct GeluTanh {
  HWY_INLINE V operator()(V x) const { return hn::Mul(x, logistic(doubled_argument(x)).value); }
};

struct SiluGradient {
  HWY_INLINE V operator()(V gradient, V x) const {
    const Logistic s = logistic(x);
    return hn::Mul(gradient, hn::MulAdd(x, s.slope, s.value));
  }
};

struct GeluGradient {
  HWY_INLINE V operator()(V gradient, V x) const {
    const V density =
        hn::Mul(constant(0.39894228040143268F), exponential(hn::Mul(constant(-0.5F), hn::Mul(x, x))).value);
    return hn::Mul(gradient, hn::MulAdd(x, density, normal_distribution(x)));
  }
};

struct GeluTanhGradient {
  HWY_INLINE V operator()(V gradient, V x) const {
    const Logistic s = logistic(doubled_argument(x));
    const V inner = hn::MulAdd(constant(3 * kScale * kCubic), hn::Mul(x, x), constant(kScale));
    return hn::Mul(gradient, hn::MulAdd(hn::Mul(x, inner), s.slope, s.value));
  }
};

// Applies a function elementwise. The last elements, which do not fill a vector, are copied to one that is padded.
template <class Function, class... Inputs>
HWY_INLINE void map(const Function& function, float* result, std::int64_t count, const Inputs*... inputs) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(function(hn::LoadU(d, inputs + i)...), d, result + i);
  if (i == count) return;
  const auto rest = static_cast<std::size_t>(count - i);
  const auto load = [&](const float* from) {
    HWY_ALIGN float lane[HWY_MAX_BYTES / sizeof(float)] = {};
    for (std::size_t at = 0; at < rest; ++at) lane[at] = from[at];
    return hn::Load(d, lane);
  };
  HWY_ALIGN float lane[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(function(load(inputs + i)...), d, lane);
  for (std::size_t at = 0; at < rest; ++at) result[i + static_cast<std::int64_t>(at)] = lane[at];
}

}  // namespace

#define PHALANX_UNARY(name, Function) \
  void name(const float* x, float* y, std::int64_t count) { map(Function(), y, count, x); }
#define PHALANX_GRADIENT(name, Function)                                                \
  void name(const float* gradient, const float* x, float* result, std::int64_t count) { \
    map(Function(), result, count, gradient, x);                                        \
  }

PHALANX_UNARY(tanh, Tanh)
PHALANX_UNARY(sigmoid, Sigmoid)
PHALANX_UNARY(silu, Silu)
PHALANX_UNARY(gelu, Gelu)
PHALANX_UNARY(gelu_tanh, GeluTanh)
PHALANX_GRADIENT(silu_gradient, SiluGradient)
PHALANX_GRADIENT(gelu_gradient, GeluGradient)
PHALANX_GRADIENT(gelu_tanh_gradient, GeluTanhGradient)

#undef PHALANX_UNARY
#undef PHALANX_GRADIENT

}  // namespace phalanx::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace phalanx::vector {

#define PHALANX_UNARY(name) \
  HWY_EXPORT(name);         \
  void name(const float* x, float* y, std::int64_t count) { HWY_DYNAMIC_DISPATCH(name)(x, y, count); }
#define PHALANX_GRADIENT(name)                                                          \
  HWY_EXPORT(name);                                                                     \
  void name(const float* gradient, const float* x, float* result, std::int64_t count) { \
    HWY_DYNAMIC_DISPATCH(name)(gradient, x, result, count);                             \
  }

PHALANX_UNARY(tanh)
PHALANX_UNARY(sigmoid)
PHALANX_UNARY(silu)
PHALANX_UNARY(gelu)
PHALANX_UNARY(gelu_tanh)
PHALANX_GRADIENT(silu_gradient)
PHALANX_GRADIENT(gelu_gradient)
PHALANX_GRADIENT(gelu_tanh_gradient)

}  // namespace phalanx::vector
#endif
