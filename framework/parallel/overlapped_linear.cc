// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/overlapped_linear.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kPositions = -2;
constexpr int kTag = 2;  // for the messages of all layers of a group

int after(const Communicator& group, int steps) { return (group.rank() + steps) % group.size(); }
int before(const Communicator& group, int steps) { return (group.rank() + group.size() - steps) % group.size(); }

struct Gathered {
  at::Tensor product, x;  // of the positions of all ranks
};

Gathered gather_and_multiply(const at::Tensor& x, const at::Tensor& matrix, Communicator& group) {
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<at::Tensor> chunks(size), products(size);
  at::Tensor here = x.contiguous();
  for (int step = 0; step < group.size(); ++step) {
    const bool last = step + 1 == group.size();
    at::Tensor next;
    Work sent, received;
    if (!last) {
      next = at::empty_like(here);
      sent = group.send(here, after(group, 1), kTag);
      received = group.recv(next, before(group, 1), kTag);
    }
    const auto owner = static_cast<std::size_t>(before(group, step));
    chunks[owner] = here;
    products[owner] = at::matmul(here, matrix);
    if (last) break;
    received.wait();
    sent.wait();
    here = next;
  }
  return {at::concat(products, kPositions), at::concat(chunks, kPositions)};
}

// The sum of chunk c begins at rank c + 1, and is complete when it arrives at rank c.
at::Tensor multiply_and_scatter(const at::Tensor& x, const at::Tensor& matrix, Communicator& group) {
  const auto chunks = x.chunk(group.size(), kPositions);
  at::Tensor sum;  // kept while it is sent, until the next one replaces it
  std::optional<Work> sent;
  for (int step = 1; step <= group.size(); ++step) {
    const at::Tensor& chunk = chunks[static_cast<std::size_t>(before(group, step))];
    at::Tensor coming;
    Work received;
    if (step > 1) {
      coming = at::empty_like(sum);
      received = group.recv(coming, before(group, 1), kTag);
    }
    const at::Tensor own = at::matmul(chunk, matrix).contiguous();  // overlaps with sending and receiving sums
    if (step > 1) {
      received.wait();
      own.add_(coming);
    }
    if (sent) sent->wait();
    sum = own;
    if (step == group.size()) break;
    sent = group.send(sum, after(group, 1), kTag);
  }
  return sum;
}

struct ProductRing final : torch::CustomClassHolder {
  explicit ProductRing(CommunicatorPtr group) : group(std::move(group)) {}
  CommunicatorPtr group;
};
using ProductRingPtr = c10::intrusive_ptr<ProductRing>;

Communicator& begin_backward(AutogradContext* context) {
  TORCH_CHECK(!at::GradMode::is_enabled(), "products that overlap with communication have no second derivatives");
  return *c10::static_intrusive_pointer_cast<ProductRing>(context->saved_data["ring"].toCapsule())->group;
}

at::Tensor gradient_of_matrix(const at::Tensor& x, const at::Tensor& of_product) {
  return at::matmul(x.flatten(0, -2).t(), of_product.flatten(0, -2));
}

class GatheredProduct : public torch::autograd::Function<GatheredProduct> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& matrix,
                            const ProductRingPtr& ring) {
    auto [product, whole] = gather_and_multiply(x, matrix, *ring->group);
    context->saved_data["ring"] = c10::IValue::make_capsule(ring);
    context->save_for_backward({whole, matrix});
    return product;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto& group = begin_backward(context);
    const auto saved = context->get_saved_variables();
    return {multiply_and_scatter(gradients[0], saved[1].t(), group), gradient_of_matrix(saved[0], gradients[0]),
            at::Tensor()};
  }
};

class ScatteredProduct : public torch::autograd::Function<ScatteredProduct> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& matrix,
                            const ProductRingPtr& ring) {
    context->saved_data["ring"] = c10::IValue::make_capsule(ring);
    context->save_for_backward({x, matrix});
    return multiply_and_scatter(x, matrix, *ring->group);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    auto& group = begin_backward(context);
    const auto saved = context->get_saved_variables();
    auto [product, whole] = gather_and_multiply(gradients[0], saved[1].t(), group);
    return {std::move(product), gradient_of_matrix(saved[0], whole), at::Tensor()};
  }
};

// Casts as autocast would for a product. Autocast does not affect our own functions, whose backward runs outside of it.
at::Tensor cast(const at::Tensor& tensor) {
  const auto device = tensor.device().type();
  if (!at::autocast::is_autocast_enabled(device) || tensor.scalar_type() == at::kDouble) return tensor;
  return tensor.to(at::autocast::get_autocast_dtype(device));
}

template <class Product>
at::Tensor apply(const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group) {
  const at::Tensor input = cast(x), other = cast(matrix);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  if (group->size() == 1) return at::matmul(input, other);
  return Product::apply(input, other, c10::make_intrusive<ProductRing>(group));
}

}  // namespace

at::Tensor gathered_product(const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group) {
  return apply<GatheredProduct>(x, matrix, group);
}

at::Tensor scattered_product(const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group) {
  if (x.size(kPositions) % group->size() != 0) {
    throw std::invalid_argument(std::to_string(x.size(kPositions)) + " positions cannot be divided equally among " +
                                std::to_string(group->size()) + " ranks");
  }
  return apply<ScatteredProduct>(x, matrix, group);
}

}  // namespace phalanx
