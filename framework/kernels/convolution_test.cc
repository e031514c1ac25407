// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "framework/kernels/kernel_comparison.h"
#include "framework/kernels/kernels.h"

namespace phalanx::kernels {
namespace {

struct Shape {
  std::int64_t images, inputs, height, width, outputs;
  std::array<std::int64_t, 2> kernel, padding;
  std::int64_t dilation = 1;
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << s.images << "x" << s.inputs << "x" << s.height << "x" << s.width << " to " << s.outputs << " by "
             << s.kernel[0] << "x" << s.kernel[1] << ", padding " << s.padding[0] << "x" << s.padding[1]
             << ", dilation " << s.dilation;
}

// The result, and the gradients of the input, the weight and the bias.
using Results = std::array<at::Tensor, 4>;

struct Tensors {
  explicit Tensors(const Shape& s)
      : shape(s),
        x(at::randn({s.images, s.inputs, s.height, s.width})),
        weight(at::randn({s.outputs, s.inputs, s.kernel[0], s.kernel[1]})),
        bias(at::randn({s.outputs})) {
    of_y = at::randn_like(convolve(x, weight, bias));
  }

  at::Tensor convolve(const at::Tensor& input, const at::Tensor& w, const at::Tensor& b) const {
    return at::conv2d(input, w, b, {1, 1}, shape.padding, {shape.dilation, shape.dilation});
  }

  Results compute(at::ScalarType dtype) const {
    std::vector<at::Tensor> leaves;
    for (const auto& tensor : {x, weight, bias}) leaves.push_back(tensor.to(dtype).detach().requires_grad_(true));
    const auto y = convolve(leaves[0], leaves[1], leaves[2]);
    const auto gradients = torch::autograd::grad({y}, leaves, {of_y.to(dtype)});
    return {y.detach(), gradients[0], gradients[1], gradients[2]};
  }

  Shape shape;
  at::Tensor x, weight, bias, of_y;
};

// LeNet's layers, and others whose blocks of channels, rows, taps and vectors end in every way.
const std::vector<Shape> kShapes{
    {5, 1, 28, 28, 6, {5, 5}, {2, 2}},     {3, 6, 14, 14, 16, {5, 5}, {0, 0}}, {2, 3, 32, 32, 64, {3, 3}, {1, 1}},
    {17, 1, 9, 9, 8, {3, 3}, {0, 0}},      {1, 1, 1, 1, 1, {3, 3}, {1, 1}},    {2, 2, 4, 7, 5, {2, 3}, {1, 2}},
    {2, 3, 11, 20, 13, {3, 5}, {0, 4}, 2}, {1, 8, 12, 3, 32, {3, 3}, {2, 0}},  {2, 5, 10, 10, 16, {7, 7}, {3, 3}},
    {1, 1, 6, 40, 3, {1, 4}, {0, 0}},      {2, 7, 8, 8, 24, {3, 3}, {1, 1}},   {70, 1, 5, 5, 16, {5, 5}, {0, 0}}};

TEST(Convolution, IsAsExactAsLibTorchs) {
  at::manual_seed(1);
  for (const auto& shape : kShapes) {
    SCOPED_TRACE(shape);
    const Tensors tensors(shape);
    const auto exact = tensors.compute(at::kDouble), theirs = tensors.compute(at::kFloat);
    const Registration registered;
    const auto ours = tensors.compute(at::kFloat);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      ASSERT_EQ(ours[i].sizes(), theirs[i].sizes());
      EXPECT_EQ(ours[i].strides(), theirs[i].strides());
      EXPECT_LE(largest_error(ours[i], exact[i]),
                std::max(4 * largest_error(theirs[i], exact[i]), 4 * unit_of(exact[i])))
          << "result " << i;
    }
  }
}

TEST(Convolution, OfLeNetUsesOurCodeWhileRegistered) {
  const Tensors first(kShapes[0]);
  const auto theirs = first.compute(at::kFloat);
  {
    const Registration registered;
    const auto ours = first.compute(at::kFloat);
    for (const std::size_t i : {0, 1, 2}) EXPECT_FALSE(at::equal(ours[i], theirs[i])) << "result " << i;
  }
  EXPECT_TRUE(at::equal(first.compute(at::kFloat)[0], theirs[0]));
}

TEST(Convolution, HasTheSameBitsOnAnyNumberOfThreads) {
  at::manual_seed(2);
  const Tensors tensors({64, 1, 28, 28, 6, {5, 5}, {2, 2}});
  const Registration registered;
  const auto compute = [&] { return tensors.compute(at::kFloat); };
  const auto one = with_threads(1, compute), three = with_threads(3, compute);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << "result " << i;
}

// NaN and infinities reach the same elements as in LibTorch, also next to padding.
TEST(Convolution, TakesNumbersThatAreNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  at::manual_seed(3);
  for (const auto& shape : {kShapes[0], kShapes[1], kShapes[3]}) {
    for (const std::size_t which : {0, 1, 2}) {
      for (const float value : {kInfinity, -kInfinity, std::nanf("")}) {
        Tensors tensors(shape);
        const auto& changed = which == 0 ? tensors.x : which == 1 ? tensors.weight : tensors.of_y;
        changed.view(-1)[0] = value;
        changed.view(-1)[changed.numel() / 2] = value;
        const auto theirs = tensors.compute(at::kFloat);
        const Registration registered;
        const auto ours = tensors.compute(at::kFloat);
        for (std::size_t i = 0; i < theirs.size(); ++i) {
          EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-3, 1e-3, /*equal_nan=*/true))
              << shape << ": " << value << " in " << which << ", result " << i;
        }
      }
    }
  }
}

// Our code leaves everything to LibTorch that is not dense float32 with stride 1 and one group.
TEST(Convolution, LeavesOtherArgumentsToLibTorch) {
  const at::Tensor x = at::randn({2, 4, 10, 10}), weight = at::randn({6, 4, 3, 3}), one = at::randn({6, 1, 3, 3});
  const at::Tensor image = at::randn({2, 1, 10, 10});
  const auto all = [&] {
    return std::vector<at::Tensor>{
        at::conv2d(image, one, {}, 2),
        at::conv2d(image, at::randn({6, 1, 1, 1}).fill_(0.5)),
        at::conv2d(image, one, {}, 1, 5),
        at::conv2d(x, at::ones({8, 1, 3, 3}), {}, 1, 1, 1, 4),
        at::conv2d(image.to(at::kDouble), one.to(at::kDouble)),
        at::conv2d(image.to(at::kBFloat16), one.to(at::kBFloat16)),
        at::conv2d(x.contiguous(at::MemoryFormat::ChannelsLast), weight.contiguous(at::MemoryFormat::ChannelsLast)),
        at::conv2d(image.narrow(0, 0, 0), one),
        at::conv_transpose2d(x, weight.transpose(0, 1).contiguous()),
        at::conv1d(image.select(1, 0), at::ones({3, 10, 3})),
        at::conv3d(image.unsqueeze(0), at::ones({3, 2, 1, 3, 3}))};
  };
  const auto theirs = all();
  const Registration registered;
  const auto with_ours = all();
  for (std::size_t i = 0; i < theirs.size(); ++i) EXPECT_TRUE(at::equal(theirs[i], with_ours[i])) << i;
}

TEST(Convolution, TakesViewsOfTensors) {
  const at::Tensor memory = at::randn({4, 2, 12, 24}), weight = at::randn({6, 1, 3, 6});
  const std::vector<at::Tensor> views{memory.slice(3, 0, 24, 2).narrow(1, 0, 1), memory.narrow(1, 1, 1),
                                      memory.narrow(1, 0, 1).transpose(2, 3),
                                      memory.narrow(1, 0, 1).expand({4, 1, 12, 24})};
  for (const auto& view : views) {
    const auto theirs = at::conv2d(view, weight.slice(3, 0, 6, 2));
    const Registration registered;
    EXPECT_TRUE(at::allclose(at::conv2d(view, weight.slice(3, 0, 6, 2)), theirs, 1e-4, 1e-5));
  }
}

TEST(Convolution, ComputesTheGradientsThatAreAskedFor) {
  const Tensors tensors(kShapes[0]);
  const auto all = tensors.compute(at::kFloat);
  const Registration registered;
  for (int mask = 0; mask < 8; ++mask) {
    const std::array<bool, 3> wanted{(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
    const auto [of_x, of_weight, of_bias] =
        at::convolution_backward(tensors.of_y, tensors.x, tensors.weight, at::IntArrayRef{tensors.shape.outputs},
                                 {1, 1}, tensors.shape.padding, {1, 1}, false, {0, 0}, 1, wanted);
    const std::array gradients{of_x, of_weight, of_bias};
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(gradients[i].defined(), wanted[i]) << mask;
      EXPECT_TRUE(!wanted[i] || at::allclose(gradients[i], all[i + 1], 1e-4, 1e-3)) << mask << ", gradient " << i;
    }
  }
}

TEST(Convolution, HasASecondDerivative) {
  const Tensors tensors({2, 1, 6, 6, 3, {3, 3}, {1, 1}});
  const auto second = [&] {
    const auto x = tensors.x.detach().requires_grad_(true), weight = tensors.weight.detach().requires_grad_(true);
    const auto y = tensors.convolve(x, weight, tensors.bias);
    const auto first = torch::autograd::grad({y.square().sum()}, {x}, {}, true, /*create_graph=*/true).at(0);
    return torch::autograd::grad({first.square().sum()}, {weight}).at(0);
  };
  const auto theirs = second();
  const Registration registered;
  EXPECT_TRUE(at::allclose(second(), theirs, 1e-4, 1e-3));
}

}  // namespace
}  // namespace phalanx::kernels
