// SPDX-License-Identifier: Apache-2.0
#include "engine/watch/operation_count.h"

#include <ATen/core/TensorBody.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

namespace phalanx {
namespace {

using Arguments = c10::ArrayRef<const c10::IValue>;

const at::Tensor& tensor(Arguments arguments, std::size_t i) { return arguments[i].toTensor(); }

double elements(const at::Tensor& tensor) { return static_cast<double>(tensor.numel()); }

double last_size(const at::Tensor& tensor) { return static_cast<double>(tensor.size(-1)); }

// Operations of [..., m, k] times [..., k, n].
template <std::size_t left>
double product(Arguments arguments) {
  return 2 * elements(tensor(arguments, left)) * last_size(tensor(arguments, left + 1));
}

double matrix_times_vector(Arguments arguments) { return 2 * elements(tensor(arguments, 0)); }

// Operations of [..., k] times the transpose of [n, k].
double linear(Arguments arguments) {
  return 2 * elements(tensor(arguments, 0)) * static_cast<double>(tensor(arguments, 1).size(0));
}

// Operations of a convolution with a weight [a, b, ...]. Each element of `side` is multiplied with a part of the
// weight. `side` is the output [n, a, ...], or the input of a transposed convolution, which has `a` channels.
double convolved(const at::Tensor& side, const at::Tensor& weight) {
  return 2 * elements(side) * elements(weight) / static_cast<double>(weight.size(0));
}

// Arguments: input, weight, bias, stride, padding, dilation, transposed, output_padding, groups.
double convolution(Arguments arguments) {
  const at::Tensor &input = tensor(arguments, 0), &weight = tensor(arguments, 1);
  if (arguments[6].toBool()) return convolved(input, weight);
  const auto stride = arguments[3].toIntVector(), padding = arguments[4].toIntVector(),
             dilation = arguments[5].toIntVector();
  double outputs = static_cast<double>(input.size(0) * weight.size(0));
  for (std::size_t axis = 0; axis + 2 < static_cast<std::size_t>(input.dim()); ++axis) {
    const auto i = static_cast<std::int64_t>(axis) + 2;
    const auto of = [axis](const std::vector<std::int64_t>& all) { return all[all.size() == 1 ? 0 : axis]; };
    outputs *= static_cast<double>(
        (input.size(i) + 2 * of(padding) - of(dilation) * (weight.size(i) - 1) - 1) / of(stride) + 1);
  }
  return 2 * outputs * elements(weight) / static_cast<double>(weight.size(0));
}

// Arguments: grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
// output_mask.
double convolution_backward(Arguments arguments) {
  const bool transposed = arguments[7].toBool();
  const auto wanted = arguments[10].toBoolList();
  const double one = convolved(tensor(arguments, transposed ? 1 : 0), tensor(arguments, 2));
  return one * ((wanted[0] ? 1 : 0) + (wanted[1] ? 1 : 0));
}

// Operations of attention with query [n, h, t, d] and key [n, h, s, d]: `products` products of t x s x d for each of n
// h heads.
template <std::size_t query, int products>
double attention(Arguments arguments) {
  const double keys = static_cast<double>(tensor(arguments, query + 1).size(-2));
  return 2.0 * products * elements(tensor(arguments, query)) * keys;
}

// Operations of an LSTM layer with input [t, n, in], and weights [4 h, in] and [4 h, h] for each step of each sequence.
template <int products>
double recurrent(Arguments arguments) {
  const at::Tensor& input = tensor(arguments, 0);
  const double steps = elements(input) / last_size(input);
  return 2.0 * products * steps * (elements(tensor(arguments, 1)) + elements(tensor(arguments, 2)));
}

using Count = double(Arguments);

const std::map<std::string_view, Count*>& counted() {
  static const std::map<std::string_view, Count*> all{
      {"aten::mm", product<0>},
      {"aten::bmm", product<0>},
      {"aten::addmm", product<1>},
      {"aten::addmm_", product<1>},
      {"aten::baddbmm", product<1>},
      {"aten::baddbmm_", product<1>},
      {"aten::mv", matrix_times_vector},
      {"mkldnn::_linear_pointwise", linear},
      {"aten::convolution", convolution},
      {"aten::convolution_backward", convolution_backward},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", attention<0, 2>},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention<1, 4>},
      {"aten::mkldnn_rnn_layer", recurrent<1>},
      {"aten::mkldnn_rnn_layer_backward", recurrent<2>},
  };
  return all;
}

}  // namespace

// Operators that are called by a counted operator do not count.
class FlopCounter::Counter {
 public:
  Counter()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(begin, end).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
    current = this;
  }
  ~Counter() {
    at::removeCallback(handle_);
    current = nullptr;
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  double count() const { return count_; }

 private:
  struct Inside final : at::ObserverContext {};

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    const auto found = counted().find(function.name());
    if (found == counted().end()) return nullptr;
    if (current->inside_++ == 0) current->count_ += found->second(function.inputs());
    return std::make_unique<Inside>();
  }

  static void end(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
    if (context != nullptr) --current->inside_;
  }

  static thread_local Counter* current;

  double count_ = 0;
  int inside_ = 0;  // counted operators that have not returned
  at::CallbackHandle handle_;
};

thread_local FlopCounter::Counter* FlopCounter::Counter::current = nullptr;

FlopCounter::FlopCounter() : counter_(std::make_unique<Counter>()) {}
FlopCounter::~FlopCounter() = default;

double FlopCounter::count() const { return counter_->count(); }

double count_flops(const std::function<void()>& compute) {
  const FlopCounter counting;
  compute();
  return counting.count();
}

}  // namespace phalanx
