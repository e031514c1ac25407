// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_kernels/operation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool2d_backward.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cstdint>
#include <tuple>

#include "framework/parallel/random_rows.h"

namespace phalanx::bench_kernels {
namespace {

using Call = std::function<void()>;

std::string text(std::initializer_list<std::int64_t> sizes) {
  std::string joined;
  for (const auto size : sizes) joined += (joined.empty() ? "" : "x") + std::to_string(size);
  return joined;
}

void add_products(std::vector<Operation>& all) {
  using Sizes = std::array<std::int64_t, 3>;
  for (const auto& [n, k, m] :
       {Sizes{64, 784, 512}, Sizes{512, 256, 1024}, Sizes{1024, 1024, 1024}, Sizes{4096, 1024, 1024}}) {
    const double operations = 2.0 * static_cast<double>(n) * static_cast<double>(k) * static_cast<double>(m);
    const std::string shape = text({n, k, m});
    all.push_back({"mm", shape, operations, [n = n, k = k, m = m]() -> Call {
                     return [a = at::randn({n, k}), b = at::randn({k, m})] { at::mm(a, b); };
                   }});
    all.push_back({"linear", shape, operations, [n = n, k = k, m = m]() -> Call {
                     return [x = at::randn({n, k}), weight = at::randn({m, k})] { at::linear(x, weight); };
                   }});
    all.push_back({"gradient of the weight", shape, operations, [n = n, k = k, m = m]() -> Call {
                     return [x = at::randn({n, k}), gradient = at::randn({n, m})] { at::mm(gradient.t(), x); };
                   }});
  }
  all.push_back({"bmm", "32x128x64x128", 2.0 * 32 * 128 * 64 * 128, []() -> Call {
                   return [a = at::randn({32, 128, 64}), b = at::randn({32, 64, 128})] { at::bmm(a, b); };
                 }});
}

constexpr std::int64_t kElements = 1 << 20;

using Unary = at::Tensor(const at::Tensor& x);
using Gradient = at::Tensor(const at::Tensor& gradient, const at::Tensor& x);

void add_elementwise(std::vector<Operation>& all) {
  const auto unary = [&](const char* name, Unary* function) {
    all.push_back({name, text({kElements}), 0,
                   [function]() -> Call { return [function, x = at::randn({kElements})] { function(x); }; }});
  };
  const auto gradient = [&](const char* name, Gradient* function) {
    all.push_back({name, text({kElements}), 0, [function]() -> Call {
                     return [function, x = at::randn({kElements}), of_output = at::randn({kElements})] {
                       function(of_output, x);
                     };
                   }});
  };
  unary("exp", [](const at::Tensor& x) { return at::exp(x); });
  unary("tanh", [](const at::Tensor& x) { return at::tanh(x); });
  unary("sigmoid", [](const at::Tensor& x) { return at::sigmoid(x); });
  unary("silu", [](const at::Tensor& x) { return at::silu(x); });
  unary("gelu", [](const at::Tensor& x) { return at::gelu(x); });
  unary("gelu tanh", [](const at::Tensor& x) { return at::gelu(x, "tanh"); });
  gradient("silu backward", [](const at::Tensor& g, const at::Tensor& x) { return at::silu_backward(g, x); });
  gradient("gelu backward", [](const at::Tensor& g, const at::Tensor& x) { return at::gelu_backward(g, x); });
  gradient("gelu tanh backward",
           [](const at::Tensor& g, const at::Tensor& x) { return at::gelu_backward(g, x, "tanh"); });
  all.push_back({"factors of dropout", text({1024, 1024}), 0,
                 []() -> Call { return [x = at::randn({1024, 1024})] { dropout_factors(x, 0.1, 1, {}); }; }});
}

void add_pooling(std::vector<Operation>& all) {
  const auto add = [&](std::initializer_list<std::int64_t> sizes, std::int64_t kernel, std::int64_t stride,
                       std::int64_t padding) {
    const std::vector<std::int64_t> shape(sizes);
    const std::string window = std::to_string(kernel) + "x" + std::to_string(kernel);
    all.push_back({"max_pool2d " + window, text(sizes), 0, [=]() -> Call {
                     return [=, x = at::randn(shape)] {
                       at::max_pool2d_with_indices(x, {kernel, kernel}, {stride, stride}, {padding, padding});
                     };
                   }});
    all.push_back({"max_pool2d " + window + " backward", text(sizes), 0, [=]() -> Call {
                     const at::Tensor x = at::randn(shape);
                     const auto [y, places] =
                         at::max_pool2d_with_indices(x, {kernel, kernel}, {stride, stride}, {padding, padding});
                     return [=, places = places, gradient = at::randn_like(y)] {
                       at::max_pool2d_with_indices_backward(gradient, x, {kernel, kernel}, {stride, stride},
                                                            {padding, padding}, {1, 1}, false, places);
                     };
                   }});
  };
  add({64, 6, 28, 28}, 2, 2, 0);
  add({16, 64, 32, 32}, 3, 2, 1);
  all.push_back({"avg_pool2d 2x2", text({16, 64, 32, 32}), 0,
                 []() -> Call { return [x = at::randn({16, 64, 32, 32})] { at::avg_pool2d(x, {2, 2}, {2, 2}); }; }});
  all.push_back({"avg_pool2d 2x2 backward", text({16, 64, 32, 32}), 0, []() -> Call {
                   return [x = at::randn({16, 64, 32, 32}), gradient = at::randn({16, 64, 16, 16})] {
                     at::avg_pool2d_backward(gradient, x, {2, 2}, {2, 2}, 0, false, true, {});
                   };
                 }});
}

void add_layers(std::vector<Operation>& all) {
  all.push_back({"cross entropy, both ways", text({1024, 1000}), 0, []() -> Call {
                   const at::Tensor scores = at::randn({1024, 1000}).requires_grad_(true);
                   return [scores, classes = at::randint(0, 1000, {1024})] {
                     const at::AutoGradMode with_gradient(true);
                     at::cross_entropy_loss(scores, classes).backward();
                     scores.mutable_grad().reset();
                   };
                 }});
  all.push_back({"layer norm", text({512, 256}), 0, []() -> Call {
                   return [x = at::randn({512, 256}), weight = at::rand({256}), bias = at::rand({256})] {
                     at::native_layer_norm(x, {256}, weight, bias, 1e-5);
                   };
                 }});
  all.push_back({"batch norm in training", text({16, 64, 32, 32}), 0, []() -> Call {
                   return [x = at::randn({16, 64, 32, 32}), weight = at::rand({64}), bias = at::rand({64}),
                           mean = at::zeros({64}), variance = at::ones({64})] {
                     at::native_batch_norm(x, weight, bias, mean, variance, true, 0.1, 1e-5);
                   };
                 }});
  all.push_back({"attention, causal", text({4, 4, 128, 64}), 4.0 * 4 * 4 * 128 * 128 * 64 / 2, []() -> Call {
                   return [q = at::randn({4, 4, 128, 64})] {
                     at::_scaled_dot_product_flash_attention_for_cpu(q, q, q, 0, /*is_causal=*/true);
                   };
                 }});
  const auto convolution = [&](std::int64_t n, std::int64_t in, std::int64_t size, std::int64_t out,
                               std::int64_t kernel, std::int64_t padding) {
    const std::int64_t side = size + 2 * padding - kernel + 1;
    const auto operations = 2.0 * static_cast<double>(n * out * side * side * in * kernel * kernel);
    const std::string shape =
        text({n, in, size, size}) + " to " + std::to_string(out) + " by " + text({kernel, kernel});
    const auto weights = [=] { return at::randn({out, in, kernel, kernel}); };
    all.push_back({"convolution", shape, operations, [=]() -> Call {
                     return [=, x = at::randn({n, in, size, size}), weight = weights()] {
                       at::conv2d(x, weight, {}, {1, 1}, {padding, padding});
                     };
                   }});
    all.push_back({"convolution backward", shape, 2 * operations, [=]() -> Call {
                     return [=, x = at::randn({n, in, size, size}), weight = weights(),
                             gradient = at::randn({n, out, side, side})] {
                       at::convolution_backward(gradient, x, weight, std::nullopt, {1, 1}, {padding, padding}, {1, 1},
                                                false, {0, 0}, 1, {true, true, false});
                     };
                   }});
  };
  convolution(64, 1, 28, 6, 5, 2);
  convolution(32, 3, 32, 64, 3, 1);
  convolution(64, 6, 14, 16, 5, 0);
  convolution(16, 64, 16, 64, 3, 1);
}

}  // namespace

std::vector<Operation> operations() {
  std::vector<Operation> all;
  add_products(all);
  add_elementwise(all);
  add_pooling(all);
  add_layers(all);
  return all;
}

}  // namespace phalanx::bench_kernels
