// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/testing/worlds.h"
#include "phalanx/world.h"

// Worlds whose ranks are threads, and a small problem with the same numbers on every rank.
namespace phalanx::testing {

inline void run_worlds(int ranks, const std::function<void(World& world)>& body) {
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& communicator) {
    World world(communicator);
    body(world);
  });
}

/// A network of two layers. LibTorch's generator is shared by the threads, so values do not come from there.
struct Net : torch::nn::Module {
  Net() {
    first = register_module("first", torch::nn::Linear(3, 40));
    second = register_module("second", torch::nn::Linear(40, 2));
    set_values(0);
  }

  void set_values(double shift) {
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      parameter.copy_((at::arange(parameter.numel(), at::kFloat) + shift).sin().mul(0.5).view(parameter.sizes()));
    }
  }

  at::Tensor forward(const at::Tensor& input) { return second(first(input).tanh()); }

  torch::nn::Linear first{nullptr}, second{nullptr};
};

inline constexpr std::int64_t kRows = 12;

/// Returns rows [begin, begin + count) of the global batch of a step, [count, 3].
inline at::Tensor rows_of(std::int64_t step, std::int64_t begin, std::int64_t count) {
  return (at::arange(kRows * 3, at::kFloat) * 0.7 + static_cast<double>(step))
      .cos()
      .view({kRows, 3})
      .narrow(0, begin, count);
}

/// Returns this rank's rows.
inline at::Tensor own_rows(std::int64_t step, const World& world) {
  const auto count = kRows / world.size();
  return rows_of(step, world.rank() * count, count);
}

template <class Module>
at::Tensor loss_of(Module& module, const at::Tensor& rows) {
  return (module.forward(rows) - rows.narrow(1, 0, 2)).square().mean();
}

inline std::vector<at::Tensor> values_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> values;
  for (const auto& parameter : module.parameters()) values.push_back(parameter.detach().clone());
  return values;
}

/// Returns the values of a Net that one process has trained on the global batches of `steps` steps.
inline std::vector<at::Tensor> trained_by_one_process(
    int steps, const std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>& make) {
  Net net;
  const auto optimizer = make(net.parameters());
  for (int step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    loss_of(net, rows_of(step, 0, kRows)).backward();
    optimizer->step();
  }
  return values_of(net);
}

inline std::unique_ptr<torch::optim::Optimizer> make_sgd(std::vector<at::Tensor> parameters) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(0.1).momentum(0.9));
}

inline void expect_near(const std::vector<at::Tensor>& values, const std::vector<at::Tensor>& expected,
                        double tolerance = 1e-5) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(at::allclose(values[i], expected[i], tolerance, tolerance)) << "tensor " << i << "\n"
                                                                            << values[i] << "\n"
                                                                            << expected[i];
  }
}

/// Returns true on all ranks if the values are the same on all of them, bit for bit. Collective.
inline bool equal_on_all_ranks(const std::vector<at::Tensor>& values, World& world) {
  bool equal = true;
  for (const auto& own : values) {
    const at::Tensor first = own.contiguous().clone();
    world.communicator().broadcast(first, 0).wait();
    equal = equal && at::equal(first, own);
  }
  const at::Tensor all = at::full({1}, equal ? 1 : 0, at::kLong);
  world.communicator().all_reduce(all, Reduction::kMin).wait();
  return all.item<std::int64_t>() == 1;
}

template <class Exception>
std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace phalanx::testing
