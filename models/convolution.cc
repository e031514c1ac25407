#include "models/convolution.h"

#include <utility>

#include "models/batch_norm.h"

namespace phalanx {

torch::nn::Conv2d convolution(const Convolution& shape) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(shape.in, shape.out, shape.kernel)
                               .stride(shape.stride)
                               .padding(shape.kernel / 2)
                               .groups(shape.groups)
                               .bias(shape.bias));
}

std::shared_ptr<Sequence> conv_norm(const Convolution& shape, Sequence::Function activation, NormOptions norm) {
  auto sequence = std::make_shared<Sequence>();
  sequence->add(convolution(shape));
  sequence->add(BatchNorm2d(torch::nn::BatchNorm2dOptions(shape.out).eps(norm.eps).momentum(norm.momentum)));
  if (activation) sequence->add_function(std::move(activation));
  return sequence;
}

}  // namespace phalanx
