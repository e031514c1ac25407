// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/kernels.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/kernels/kernel_comparison.h"
#include "framework/kernels/registrations.h"

namespace phalanx::kernels {
namespace {

using ::testing::HasSubstr;
using Function = std::function<at::Tensor(const at::Tensor&)>;

struct Activation {
  std::string name;
  Function function;
  bool with_gradient = true;  // one of our kernels computes the gradient
};

const std::vector<Activation>& activations() {
  static const std::vector<Activation> all{
      {"tanh", [](const at::Tensor& x) { return at::tanh(x); }, false},
      {"sigmoid", [](const at::Tensor& x) { return at::sigmoid(x); }, false},
      {"silu", [](const at::Tensor& x) { return at::silu(x); }},
      {"gelu", [](const at::Tensor& x) { return at::gelu(x); }},
      {"gelu_tanh", [](const at::Tensor& x) { return at::gelu(x, "tanh"); }},
  };
  return all;
}

at::Tensor gradient_of(const Function& function, const at::Tensor& x, const at::Tensor& of_output) {
  const at::Tensor leaf = x.detach().clone().requires_grad_(true);
  return torch::autograd::grad({function(leaf)}, {leaf}, {of_output.to(x.scalar_type())}).at(0);
}

// Returns numbers with many exponents and both signs.
at::Tensor all_sizes() {
  const at::Tensor fine = at::linspace(-12, 12, 100'003, at::kFloat);
  const at::Tensor powers = at::exp2(at::arange(-60, 7, 0.25, at::kFloat));
  return at::cat({fine, powers, powers.neg(), at::zeros({1})});
}

TEST(Activations, AreAsExactAsLibTorchs) {
  const at::Tensor x = all_sizes(), ones = at::ones_like(x);
  for (const auto& activation : activations()) {
    SCOPED_TRACE(activation.name);
    const at::Tensor exact = activation.function(x.to(at::kDouble));
    const at::Tensor exact_gradient = gradient_of(activation.function, x.to(at::kDouble), ones);
    const double theirs = largest_error(activation.function(x), exact);
    const double gradient_of_theirs = largest_error(gradient_of(activation.function, x, ones), exact_gradient);
    const Registration ours;
    EXPECT_LE(largest_error(activation.function(x), exact), std::max(2 * theirs, 4 * unit_of(exact)));
    EXPECT_LE(largest_error(gradient_of(activation.function, x, ones), exact_gradient),
              std::max(2 * gradient_of_theirs, 4 * unit_of(exact_gradient)));
  }
}

// LibTorch's kernels and ours differ in the last bits of some of these numbers.
TEST(Activations, AreComputedByVectorCodeWhileRegistered) {
  const at::Tensor x = all_sizes();
  for (const auto& activation : activations()) {
    SCOPED_TRACE(activation.name);
    const at::Tensor before = activation.function(x);
    {
      const Registration ours;
      const bool is_mkls = activation.name == "tanh" && !replaces_tanh();
      EXPECT_EQ(at::equal(activation.function(x), before), is_mkls);
    }
    EXPECT_TRUE(at::equal(activation.function(x), before));
  }
}

// LibTorch's kernels with AVX-512 give NaN for gelu of infinity.
TEST(Activations, OfSpecialNumbersAreExact) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const at::Tensor x = at::tensor({kInfinity, -kInfinity, std::nanf(""), 0.0F, -0.0F, 1e30F, -1e30F, 200.0F, -200.0F});
  for (const auto& activation : activations()) {
    SCOPED_TRACE(activation.name);
    const at::Tensor exact = activation.function(x.to(at::kDouble)).to(at::kFloat);
    const Registration ours;
    EXPECT_TRUE(at::allclose(activation.function(x), exact, 0, 0, /*equal_nan=*/true))
        << activation.function(x) << exact;
  }
}

// Tests all counts of elements from none to more than two vectors. Each result must not depend on the neighbours.
TEST(Activations, OfAnElementDoNotDependOnItsPosition) {
  const at::Tensor x = at::randn({40});
  const Registration ours;
  for (const auto& activation : activations()) {
    if (activation.name == "tanh" && !replaces_tanh()) continue;
    SCOPED_TRACE(activation.name);
    const at::Tensor all = activation.function(x);
    for (std::int64_t begin = 0; begin < 3; ++begin) {
      for (std::int64_t count = 0; count <= 37; ++count) {
        const at::Tensor part = activation.function(x.narrow(0, begin, count));
        EXPECT_TRUE(at::equal(part, all.narrow(0, begin, count))) << begin << " " << count;
      }
    }
  }
}

// Transposed tensors, tensors with gaps, expanded ones, and another dtype: results have LibTorch's strides too.
TEST(Activations, TakeTensorsOfAnyLayout) {
  const at::Tensor x = at::randn({6, 8, 10});
  const std::vector<at::Tensor> layouts{x.transpose(0, 2),
                                        x.slice(1, 0, 8, 2),
                                        x.select(2, 3),
                                        x.narrow(0, 0, 1).expand({4, 8, 10}),
                                        x.unsqueeze(0).contiguous(at::MemoryFormat::ChannelsLast),
                                        x.to(at::kDouble),
                                        x.to(at::kBFloat16),
                                        at::empty({0, 3}),
                                        at::scalar_tensor(0.5, at::kFloat)};
  for (const auto& activation : activations()) {
    for (const auto& layout : layouts) {
      SCOPED_TRACE(activation.name);
      const at::Tensor theirs = activation.function(layout);
      const at::Tensor gradient = gradient_of(activation.function, layout, at::ones_like(layout));
      const Registration ours;
      const at::Tensor result = activation.function(layout);
      EXPECT_EQ(result.sizes(), theirs.sizes());
      EXPECT_EQ(result.strides(), theirs.strides());
      EXPECT_EQ(result.scalar_type(), theirs.scalar_type());
      EXPECT_TRUE(at::allclose(result, theirs, 1e-5, 1e-6));
      EXPECT_TRUE(at::allclose(gradient_of(activation.function, layout, at::ones_like(layout)), gradient, 1e-5, 1e-6));
    }
  }
}

TEST(Activations, WriteIntoGivenMemory) {
  const Registration ours;
  const at::Tensor x = at::randn({50}), y = at::tanh(x), logistic = at::sigmoid(x), gelu = at::gelu(x);
  at::Tensor out = at::empty({50}), empty = at::empty({0}), strided = at::empty({100}).slice(0, 0, 100, 2);
  at::tanh_out(out, x);
  EXPECT_TRUE(at::equal(out, y));
  at::tanh_out(empty, x);
  EXPECT_TRUE(at::allclose(empty, y));
  at::sigmoid_out(strided, x);
  EXPECT_TRUE(at::allclose(strided, logistic));
  at::Tensor in_place = x.clone();
  EXPECT_TRUE(at::equal(at::gelu_(in_place), gelu));
  EXPECT_TRUE(at::equal(in_place, gelu));
  const at::Tensor memory = at::randn({60}), copy = memory.clone();
  at::Tensor shifted = memory.narrow(0, 10, 50);
  EXPECT_THROW(at::tanh_out(shifted, memory.narrow(0, 0, 50)), c10::Error) << "memory that overlaps";
  EXPECT_TRUE(at::equal(memory, copy));
}

TEST(Activations, HaveSecondDerivatives) {
  const at::Tensor values = at::linspace(-3, 3, 20, at::kFloat);
  const auto second = [&](const Function& function) {
    const at::Tensor x = values.clone().requires_grad_(true);
    const auto first = torch::autograd::grad({function(x).sum()}, {x}, {}, true, /*create_graph=*/true).at(0);
    return torch::autograd::grad({first.sum()}, {x}).at(0);
  };
  for (const auto& activation : activations()) {
    const at::Tensor theirs = second(activation.function);
    const Registration ours;
    EXPECT_TRUE(at::allclose(second(activation.function), theirs, 1e-4, 1e-5)) << activation.name;
  }
}

struct Pooling {
  std::int64_t kernel, stride, padding, dilation;
  bool ceil_mode;

  std::tuple<at::Tensor, at::Tensor> operator()(const at::Tensor& x) const {
    return at::max_pool2d_with_indices(x, {kernel, kernel}, {stride, stride}, {padding, padding}, {dilation, dilation},
                                       ceil_mode);
  }
};

void expect_same_pooling(const Pooling& pooling, const at::Tensor& x) {
  const auto [values, places] = pooling(x);
  const Registration ours;
  const auto [our_values, our_places] = pooling(x);
  EXPECT_TRUE(at::allclose(our_values, values, 0, 0, /*equal_nan=*/true));
  EXPECT_TRUE(at::equal(our_places, places));
  EXPECT_EQ(our_values.strides(), values.strides());
  EXPECT_EQ(our_places.strides(), places.strides());
}

// The elements are small integers, so that there are ties.
TEST(MaxPool, MatchesLibTorchBitForBit) {
  at::manual_seed(1);
  for (std::int64_t kernel = 1; kernel <= 4; ++kernel) {
    for (std::int64_t stride = 1; stride <= 4; ++stride) {
      for (std::int64_t padding = 0; padding <= kernel / 2; ++padding) {
        for (const bool ceil_mode : {false, true}) {
          for (std::int64_t size = kernel; size < 40; size += 7) {
            SCOPED_TRACE(::testing::Message()
                         << kernel << " " << stride << " " << padding << " " << ceil_mode << " " << size);
            at::Tensor x = at::randint(-3, 3, {2, 3, kernel + 5, size}).to(at::kFloat);
            expect_same_pooling({kernel, stride, padding, 1 + size % 2, ceil_mode && padding == 0},
                                at::constant_pad_nd(x, {kernel, kernel, kernel, kernel}));
            expect_same_pooling({kernel, stride, padding, 1, ceil_mode}, x);
            x.masked_fill_(at::rand_like(x) < 0.2, std::nan(""));
            x.masked_fill_(at::rand_like(x) < 0.5, -std::numeric_limits<double>::infinity());
            expect_same_pooling({kernel, stride, padding, 1, ceil_mode}, x.select(0, 1));
          }
        }
      }
    }
  }
}

TEST(MaxPool, TakesTensorsOfAnyLayout) {
  const Pooling pooling{3, 2, 1, 1, false};
  const at::Tensor x = at::randn({2, 4, 9, 10});
  for (const auto& layout : {x.contiguous(at::MemoryFormat::ChannelsLast), x.transpose(2, 3), x.slice(3, 0, 10, 2),
                             x.to(at::kDouble), x.to(at::kBFloat16)}) {
    expect_same_pooling(pooling, layout);
  }
}

TEST(MaxPool, HasLibTorchsGradient) {
  const at::Tensor x = at::randint(-3, 3, {2, 3, 13, 17}).to(at::kFloat);
  const auto pool = [](const at::Tensor& y) { return at::max_pool2d(y, 3, 2, 1); };
  const at::Tensor of_output = at::randn_like(pool(x)), theirs = gradient_of(pool, x, of_output);
  const Registration ours;
  EXPECT_TRUE(at::equal(gradient_of(pool, x, of_output), theirs));
}

TEST(MaxPool, WritesIntoGivenMemory) {
  const at::Tensor x = at::randn({2, 3, 8, 8});
  const auto [values, places] = at::max_pool2d_with_indices(x, {2, 2});
  const Registration ours;
  at::Tensor y = at::empty_like(values), at = at::empty_like(places), other = at::empty({0}),
             at_other = at::empty({0}, at::kLong);
  at::max_pool2d_with_indices_out(y, at, x, {2, 2});
  EXPECT_TRUE(at::equal(y, values) && at::equal(at, places));
  at::max_pool2d_with_indices_out(other, at_other, x, {2, 2});
  EXPECT_TRUE(at::equal(other, values) && at::equal(at_other, places));
}

TEST(MaxPool, RefusesWhatLibTorchRefuses) {
  const Registration ours;
  const at::Tensor x = at::randn({1, 1, 4, 4});
  EXPECT_THROW(at::max_pool2d_with_indices(x, {2, 2}, {2, 2}, {2, 2}), c10::Error) << "padding above half the window";
  EXPECT_THROW(at::max_pool2d_with_indices(x, {5, 5}), c10::Error) << "a window larger than the image";
  EXPECT_THROW(at::max_pool2d_with_indices(x, {2, 2}, {0, 1}), c10::Error);
  EXPECT_THROW(at::max_pool2d_with_indices(x.select(0, 0).select(0, 0), {2, 2}), c10::Error);
}

TEST(Registration, DoesNotWarnOfReplacedKernels) {
  ::testing::internal::CaptureStderr();
  {
    const Registration ours;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Plan, FollowsFromConfigAndProcessor) {
  const Processor amd{.vendor = "AuthenticAMD", .name = "EPYC", .vectors = "AVX512"};
  const Processor intel{.vendor = "GenuineIntel", .name = "Xeon", .vectors = "AVX512"};
  EXPECT_EQ(make_plan(kLibTorch, amd).summary(), "libtorch");
  EXPECT_EQ(make_plan(kAuto, amd).summary(), "vectors, mkl as on intel");
  EXPECT_EQ(make_plan(kAuto, intel).summary(), "vectors");
  EXPECT_THROW(make_plan("fast", intel), ConfigError);
}

TEST(Plan, NamesTheCodeAndTheReason) {
  for (const auto& choice : {kAuto, kLibTorch}) {
    for (const auto& row : make_plan(choice, this_processor()).table()) {
      EXPECT_FALSE(row.operators.empty() || row.tensors.empty() || row.code.empty() || row.reason.empty());
      EXPECT_TRUE(choice != kLibTorch || row.code == "LibTorch");
    }
  }
}

TEST(Processor, IsKnownByNameAndVectors) {
  const Processor processor = this_processor();
  EXPECT_FALSE(processor.vectors.empty());
#ifdef __x86_64__
  EXPECT_FALSE(processor.vendor.empty());
  EXPECT_FALSE(processor.name.empty());
#endif
}

}  // namespace
}  // namespace phalanx::kernels
