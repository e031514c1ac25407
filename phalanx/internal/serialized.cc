// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/serialized.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/serialize/archive.h>

#include <cstdint>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

template <class Object>
std::string serialize_object(const Object& object) {
  torch::serialize::OutputArchive archive;
  object.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

template <class Object>
void deserialize_into(Object& object, const std::string& bytes) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  object.load(archive);
}

using NodePtr = decltype(torch::autograd::impl::try_get_grad_accumulator(std::declval<const at::Tensor&>()));

// The memory of a tensor before a module was loaded, and its node in the autograd graph, which has the hooks of
// DistributedDataParallel. LibTorch drops the node while the tensor has another dtype or device.
struct FormerMemory {
  std::string name;
  at::Tensor tensor, memory;
  NodePtr node;  // null: there is none
};

std::vector<FormerMemory> memory_of(const torch::nn::Module& module) {
  std::vector<FormerMemory> all;
  const auto add = [&](const auto& named) {
    if (named.value().defined())
      all.push_back({named.key(), named.value(), named.value().variable_data(),
                     torch::autograd::impl::try_get_grad_accumulator(named.value())});
  };
  for (const auto& named : module.named_parameters()) add(named);
  for (const auto& named : module.named_buffers()) add(named);
  return all;
}

void give_back(const std::vector<FormerMemory>& all) {
  for (const auto& one : all) {
    at::Tensor(one.tensor).set_data(one.memory);
    if (one.node) torch::autograd::impl::set_grad_accumulator(one.tensor, c10::weak_intrusive_ptr(one.node));
  }
}

void require_same_shapes(const std::vector<FormerMemory>& all) {
  for (const auto& [name, tensor, memory, node] : all) {
    if (tensor.sizes() == memory.sizes()) continue;
    std::ostringstream message;
    message << name << " is " << memory.sizes() << " in the module, but " << tensor.sizes() << " in the file";
    throw Error(message.str());
  }
}

}  // namespace

std::string to_bytes(const torch::nn::Module& module) { return serialize_object(module); }
std::string to_bytes(const torch::optim::Optimizer& optimizer) { return serialize_object(optimizer); }

void from_bytes(torch::nn::Module& module, const std::string& bytes) {
  const at::NoGradGuard no_grad;
  const auto former = memory_of(module);
  try {
    deserialize_into(module, bytes);
    require_same_shapes(former);
    for (const auto& one : former) at::Tensor(one.memory).copy_(one.tensor);
  } catch (...) {
    give_back(former);
    throw;
  }
  give_back(former);
}

void from_bytes(torch::optim::Optimizer& optimizer, const std::string& bytes) {
  optimizer.state().clear();  // load() keeps the state of parameters that have none in the archive
  deserialize_into(optimizer, bytes);
}

std::string broadcast_bytes(std::string bytes, int root, Communicator& group) {
  const at::Tensor size = at::full({1}, static_cast<std::int64_t>(bytes.size()), at::kLong);
  group.broadcast(size, root).wait();
  bytes.resize(static_cast<std::size_t>(size.item<std::int64_t>()));
  group.broadcast(at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, at::kByte), root).wait();
  return bytes;
}

}  // namespace phalanx
