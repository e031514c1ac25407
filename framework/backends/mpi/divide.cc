#include "framework/backends/mpi/divide.h"

namespace phalanx::mpi {
namespace {

template <class T>
void divide_elements(const at::Tensor& tensor, int divisor) {
  auto* elements = static_cast<T*>(tensor.data_ptr());
  const std::int64_t count = tensor.numel();
  for (std::int64_t i = 0; i < count; ++i) elements[i] /= static_cast<T>(divisor);
}

}  // namespace

void divide(const at::Tensor& tensor, int divisor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return divide_elements<float>(tensor, divisor);
    case at::kDouble:
      return divide_elements<double>(tensor, divisor);
    default:
      return divide_elements<std::int64_t>(tensor, divisor);
  }
}

}  // namespace phalanx::mpi
