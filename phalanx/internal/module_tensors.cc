// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/module_tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

// Sends tensors of one dtype and device as one. `tensors` must not be empty.
void broadcast_together(const std::vector<at::Tensor>& tensors, int root, Communicator& group) {
  std::int64_t elements = 0;
  for (const auto& tensor : tensors) elements += tensor.numel();
  const at::Tensor all = at::empty({elements}, tensors.front().options().requires_grad(false));
  const auto with_parts = [&](const auto& copy) {
    std::int64_t begin = 0;
    for (const auto& tensor : tensors) {
      copy(tensor, all.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
      begin += tensor.numel();
    }
  };
  if (group.rank() == root) with_parts([](const at::Tensor& tensor, const at::Tensor& part) { part.copy_(tensor); });
  group.broadcast(all, root).wait();
  if (group.rank() != root) with_parts([](const at::Tensor& tensor, const at::Tensor& part) { tensor.copy_(part); });
}

// Returns the first line in which `own` differs from `expected`, as a message, or an empty text.
std::string first_difference(const std::vector<std::string>& own, const std::vector<std::string>& expected, int rank) {
  const auto [here, there] = std::mismatch(own.begin(), own.end(), expected.begin(), expected.end());
  if (here == own.end() && there == expected.end()) return "";
  const std::string nothing = "nothing more";
  return "rank " + std::to_string(rank) + " has " + (here == own.end() ? nothing : *here) + ", but rank 0 has " +
         (there == expected.end() ? nothing : *there);
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

ModuleTensors tensors_of(const torch::nn::Module& module) {
  ModuleTensors tensors;
  std::set<const void*> seen;
  const auto is_new = [&](const at::Tensor& tensor) {
    return tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second;
  };
  for (const auto& named : module.named_parameters()) {
    if (!is_new(named.value())) continue;
    if (named.value().requires_grad()) {
      tensors.trained.emplace_back(named.key(), named.value());
    } else {
      tensors.constant.push_back(named.value());
    }
  }
  for (const auto& named : module.named_buffers()) {
    if (is_new(named.value())) tensors.buffers.push_back(named.value());
  }
  return tensors;
}

void broadcast_values(const std::vector<at::Tensor>& tensors, int root, Communicator& group) {
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  std::map<std::pair<std::string, at::ScalarType>, std::vector<at::Tensor>> alike;
  for (const auto& tensor : tensors) alike[{tensor.device().str(), tensor.scalar_type()}].push_back(tensor);
  for (const auto& [kind, some] : alike) broadcast_together(some, root, group);
}

void require_same_lines(const std::vector<std::string>& lines, Communicator& group) {
  if (group.size() == 1) return;
  const std::string own = join(lines, "\n");  // of which one may have several lines itself
  const auto expected = split_lines(broadcast_text(own, group));
  for (const auto& difference : all_gather_text(first_difference(split_lines(own), expected, group.rank()), group)) {
    if (!difference.empty()) throw ConfigError("DistributedDataParallel: the ranks differ: " + difference);
  }
}

std::vector<std::string> describe(const torch::nn::Module& module) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& kind, const std::string& name, const at::Tensor& tensor) {
    std::ostringstream line;
    line << kind << ' ' << name;
    if (tensor.defined())
      line << ' ' << tensor.sizes() << ' ' << tensor.scalar_type() << " on " << tensor.device().type();
    lines.push_back(line.str());
  };
  for (const auto& named : module.named_parameters()) {
    add(named.value().requires_grad() ? "parameter" : "constant parameter", named.key(), named.value());
  }
  for (const auto& named : module.named_buffers()) add("buffer", named.key(), named.value());
  return lines;
}

}  // namespace phalanx
