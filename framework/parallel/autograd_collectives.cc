// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/autograd_collectives.h"

#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/accumulate.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace phalanx {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Sizes = std::vector<std::int64_t>;

// The group and the dimensions, which forward saves for backward.
struct Placement final : torch::CustomClassHolder {
  Placement(CommunicatorPtr group, std::int64_t dim, Sizes sizes, std::int64_t join_dim = 0)
      : group(std::move(group)), dim(dim), join_dim(join_dim), sizes(std::move(sizes)) {}

  std::int64_t begin() const { return std::accumulate(sizes.begin(), sizes.begin() + group->rank(), std::int64_t{0}); }
  std::int64_t mine() const { return sizes[static_cast<std::size_t>(group->rank())]; }
  std::int64_t all() const { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}); }

  CommunicatorPtr group;
  std::int64_t dim, join_dim;
  Sizes sizes;
};
using PlacementPtr = c10::intrusive_ptr<Placement>;

// ---- without derivatives

// Returns the tensor with `dim` first and contiguous, so that the parts of ranks lie one after the other.
at::Tensor outermost(const at::Tensor& tensor, std::int64_t dim) { return tensor.movedim(dim, 0).contiguous(); }

Sizes counts_of(const Placement& place, const at::Tensor& all_rows) {
  const auto row = all_rows.size(0) == 0 ? 0 : all_rows.numel() / all_rows.size(0);
  Sizes counts;
  for (const auto size : place.sizes) counts.push_back(size * row);
  return counts;
}

at::Tensor empty_like_rows(const at::Tensor& with_dim_first, std::int64_t rows) {
  auto shape = with_dim_first.sizes().vec();
  shape[0] = rows;
  return at::empty(shape, with_dim_first.options());
}

at::Tensor summed(const at::Tensor& tensor, const Placement& place) {
  at::Tensor sum = tensor.clone(at::MemoryFormat::Contiguous);
  place.group->all_reduce(sum, Reduction::kSum).wait();
  return sum;
}

at::Tensor gathered(const at::Tensor& part, const Placement& place) {
  const at::Tensor input = outermost(part, place.dim);
  const at::Tensor output = empty_like_rows(input, place.all());
  place.group->all_gather(output, input, counts_of(place, output)).wait();
  return output.movedim(0, place.dim).contiguous();
}

at::Tensor own_part(const at::Tensor& tensor, const Placement& place) {
  return tensor.narrow(place.dim, place.begin(), place.mine()).contiguous();
}

at::Tensor scattered(const at::Tensor& tensor, const Placement& place) {
  const at::Tensor input = outermost(tensor, place.dim);
  const at::Tensor output = empty_like_rows(input, place.mine());
  place.group->reduce_scatter(output, input, Reduction::kSum, counts_of(place, input)).wait();
  return output.movedim(0, place.dim).contiguous();
}

at::Tensor exchanged(const at::Tensor& tensor, std::int64_t split_dim, std::int64_t join_dim, Communicator& group) {
  const at::Tensor input = outermost(tensor, split_dim);
  const at::Tensor output = at::empty_like(input);
  group.all_to_all(output, input).wait();
  std::vector<at::Tensor> parts;
  for (const auto& part : output.chunk(group.size(), 0)) parts.push_back(part.movedim(0, split_dim));
  return at::concat(parts, join_dim).contiguous();
}

// ---- with derivatives: each is its partner's backward

// Uses `Operation` for forward and `Partner` for backward.
template <class Operation, class Partner>
class Paired : public torch::autograd::Function<Paired<Operation, Partner>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor, const PlacementPtr& place) {
    context->saved_data["place"] = c10::IValue::make_capsule(place);
    return Operation::compute(tensor, *place);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["place"].toCapsule();
    const auto place = c10::static_intrusive_pointer_cast<Placement>(capsule);
    return {Paired<Partner, Operation>::apply(gradients[0], place), at::Tensor()};
  }
};

struct CopyToRanks {
  static at::Tensor compute(const at::Tensor& tensor, const Placement&) { return tensor.view_as(tensor); }
};
struct SumOverRanks {
  static at::Tensor compute(const at::Tensor& tensor, const Placement& place) { return summed(tensor, place); }
};
struct GatherParts {
  static at::Tensor compute(const at::Tensor& tensor, const Placement& place) { return gathered(tensor, place); }
};
struct TakePart {
  static at::Tensor compute(const at::Tensor& tensor, const Placement& place) { return own_part(tensor, place); }
};
struct SumAndScatter {
  static at::Tensor compute(const at::Tensor& tensor, const Placement& place) { return scattered(tensor, place); }
};

class ExchangeParts : public torch::autograd::Function<ExchangeParts> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& tensor, const PlacementPtr& place) {
    context->saved_data["place"] = c10::IValue::make_capsule(place);
    return exchanged(tensor, place->dim, place->join_dim, *place->group);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto there = c10::static_intrusive_pointer_cast<Placement>(context->saved_data["place"].toCapsule());
    return {apply(gradients[0], c10::make_intrusive<Placement>(there->group, there->join_dim, Sizes{}, there->dim)),
            at::Tensor()};
  }
};

struct Traffic final : torch::CustomClassHolder {
  Traffic(CommunicatorPtr group, Sizes to, Sizes from)
      : group(std::move(group)), to(std::move(to)), from(std::move(from)) {}

  CommunicatorPtr group;
  Sizes to, from;  // rows, by rank
};

class ExchangeRows : public torch::autograd::Function<ExchangeRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const c10::intrusive_ptr<Traffic>& traffic) {
    context->saved_data["traffic"] = c10::IValue::make_capsule(traffic);
    auto shape = rows.sizes().vec();
    shape[0] = std::accumulate(traffic->from.begin(), traffic->from.end(), std::int64_t{0});
    const at::Tensor output = at::empty(shape, rows.options());
    const auto row = c10::multiply_integers(shape.begin() + 1, shape.end());
    Sizes to = traffic->to, from = traffic->from;
    for (auto* counts : {&to, &from}) {
      for (auto& count : *counts) count *= row;
    }
    traffic->group->all_to_all(output, rows.contiguous(), from, to).wait();
    return output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto there = c10::static_intrusive_pointer_cast<Traffic>(context->saved_data["traffic"].toCapsule());
    return {apply(gradients[0], c10::make_intrusive<Traffic>(there->group, there->from, there->to)), at::Tensor()};
  }
};

std::int64_t wrapped(const at::Tensor& tensor, std::int64_t dim) { return dim < 0 ? dim + tensor.dim() : dim; }

// Returns an equal share of the size of `tensor` along `dim`.
std::int64_t share(const at::Tensor& tensor, std::int64_t dim, const Communicator& group) {
  const auto size = tensor.size(dim);
  if (size % group.size() != 0) {
    throw std::invalid_argument("dimension " + std::to_string(dim) + " has " + std::to_string(size) +
                                " elements, which cannot be divided among " + std::to_string(group.size()) + " ranks");
  }
  return size / group.size();
}

PlacementPtr place_of(const CommunicatorPtr& group, std::int64_t dim, Sizes sizes, std::int64_t size_of_each) {
  if (sizes.empty()) sizes.assign(static_cast<std::size_t>(group->size()), size_of_each);
  return c10::make_intrusive<Placement>(group, dim, std::move(sizes));
}

template <class Operation, class Partner>
at::Tensor of_parts(const at::Tensor& part, std::int64_t dim, const CommunicatorPtr& group, Sizes sizes) {
  if (group->size() == 1) return part;
  dim = wrapped(part, dim);
  return Paired<Operation, Partner>::apply(part, place_of(group, dim, std::move(sizes), part.size(dim)));
}

template <class Operation, class Partner>
at::Tensor of_whole(const at::Tensor& tensor, std::int64_t dim, const CommunicatorPtr& group, Sizes sizes) {
  if (group->size() == 1) return tensor;
  dim = wrapped(tensor, dim);
  const auto each = sizes.empty() ? share(tensor, dim, *group) : 0;
  return Paired<Operation, Partner>::apply(tensor, place_of(group, dim, std::move(sizes), each));
}

}  // namespace

at::Tensor copy_to_ranks(const at::Tensor& tensor, const CommunicatorPtr& group) {
  if (group->size() == 1) return tensor;
  return Paired<CopyToRanks, SumOverRanks>::apply(tensor, c10::make_intrusive<Placement>(group, 0, Sizes{}));
}

at::Tensor sum_over_ranks(const at::Tensor& tensor, const CommunicatorPtr& group) {
  if (group->size() == 1) return tensor;
  return Paired<SumOverRanks, CopyToRanks>::apply(tensor, c10::make_intrusive<Placement>(group, 0, Sizes{}));
}

at::Tensor gather_parts(const at::Tensor& part, std::int64_t dim, const CommunicatorPtr& group, Sizes sizes) {
  return of_parts<GatherParts, TakePart>(part, dim, group, std::move(sizes));
}

at::Tensor take_part(const at::Tensor& tensor, std::int64_t dim, const CommunicatorPtr& group, Sizes sizes) {
  return of_whole<TakePart, GatherParts>(tensor, dim, group, std::move(sizes));
}

at::Tensor gather_summed(const at::Tensor& part, std::int64_t dim, const CommunicatorPtr& group, Sizes sizes) {
  return of_parts<GatherParts, SumAndScatter>(part, dim, group, std::move(sizes));
}

at::Tensor sum_and_scatter(const at::Tensor& tensor, std::int64_t dim, const CommunicatorPtr& group, Sizes sizes) {
  return of_whole<SumAndScatter, GatherParts>(tensor, dim, group, std::move(sizes));
}

at::Tensor exchange_parts(const at::Tensor& tensor, std::int64_t split_dim, std::int64_t join_dim,
                          const CommunicatorPtr& group) {
  if (group->size() == 1) return tensor;
  split_dim = wrapped(tensor, split_dim);
  join_dim = wrapped(tensor, join_dim);
  share(tensor, split_dim, *group);
  return ExchangeParts::apply(tensor, c10::make_intrusive<Placement>(group, split_dim, Sizes{}, join_dim));
}

at::Tensor exchange_rows(const at::Tensor& rows, Sizes to, Sizes from, const CommunicatorPtr& group) {
  if (group->size() == 1) return rows;
  return ExchangeRows::apply(rows, c10::make_intrusive<Traffic>(group, std::move(to), std::move(from)));
}

}  // namespace phalanx
