#include "framework/comm/communicator.h"

#include <stdexcept>

namespace phalanx {
namespace {

[[noreturn]] void refuse(const char* operation, const std::string& why) {
  throw std::invalid_argument(std::string(operation) + ": " + why);
}

}  // namespace

void check_tensor(const char* operation, const at::Tensor& tensor) {
  if (!tensor.defined()) refuse(operation, "the tensor is undefined");
  if (!tensor.device().is_cpu()) refuse(operation, "the tensor is on " + tensor.device().str() + ", not on the CPU");
  if (tensor.layout() != at::kStrided || !tensor.is_contiguous()) refuse(operation, "the tensor is not contiguous");
  const auto type = tensor.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kLong) {
    refuse(operation, std::string("dtype ") + c10::toString(type) + " is none of Float, Double, Long");
  }
}

void check_root(const char* operation, int root, int size) {
  if (root >= 0 && root < size) return;
  refuse(operation, "root " + std::to_string(root) + " is not a rank of a group of " + std::to_string(size));
}

}  // namespace phalanx
