// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/serialized.h"

#include <ATen/core/grad_mode.h>
#include <torch/serialize/archive.h>

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

torch::serialize::InputArchive open_archive(const std::string& bytes) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  return archive;
}

// A tensor of a module, and the values that the file has for it.
struct Stored {
  at::Tensor tensor, values;
};

// Appends the tensors of `module` and of the modules in it. Module::load() would give them other memory, and reads a
// file of another dtype without converting it.
void read_tensors(const torch::nn::Module& module, torch::serialize::InputArchive& archive, const std::string& prefix,
                  std::vector<Stored>& all) {
  const auto read = [&](const auto& named, bool is_buffer) {
    const std::string name = prefix + named.key();
    Stored stored{named.value(), {}};
    if (!stored.tensor.defined()) return;
    if (!archive.try_read(named.key(), stored.values, is_buffer)) throw Error(name + " is not in the file");
    if (stored.values.sizes() != stored.tensor.sizes()) {
      std::ostringstream message;
      message << name << " is " << stored.tensor.sizes() << " in the module, but " << stored.values.sizes()
              << " in the file";
      throw Error(message.str());
    }
    all.push_back(std::move(stored));
  };
  for (const auto& named : module.named_parameters(/*recurse=*/false)) read(named, /*is_buffer=*/false);
  for (const auto& named : module.named_buffers(/*recurse=*/false)) read(named, /*is_buffer=*/true);
  for (const auto& child : module.named_children()) {
    if (!child.value()->is_serializable()) continue;
    const std::string name = prefix + child.key();
    torch::serialize::InputArchive inner;
    if (!archive.try_read(child.key(), inner)) throw Error(name + " is not in the file");
    read_tensors(*child.value(), inner, name + ".", all);
  }
}

}  // namespace

std::string to_bytes(const torch::nn::Module& module) { return serialize_object(module); }
std::string to_bytes(const torch::optim::Optimizer& optimizer) { return serialize_object(optimizer); }

void from_bytes(torch::nn::Module& module, const std::string& bytes) {
  const at::NoGradGuard no_grad;
  auto archive = open_archive(bytes);
  std::vector<Stored> all;
  read_tensors(module, archive, "", all);
  for (const auto& [tensor, values] : all) at::Tensor(tensor).copy_(values);
}

void from_bytes(torch::optim::Optimizer& optimizer, const std::string& bytes) {
  optimizer.state().clear();  // load() keeps the state of parameters that have none in the archive
  auto archive = open_archive(bytes);
  optimizer.load(archive);
}

}  // namespace phalanx
