#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/call.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// What every backend's operations check first, and know afterwards. Each function throws std::invalid_argument, with
/// the operation's name, unless some rank of a group could take these arguments, and returns the call they make.
Call check_broadcast(const Communicator& group, const at::Tensor& tensor, int root);
Call check_reduce(const Communicator& group, const at::Tensor& tensor, const Reduction& op, int root);
Call check_all_reduce(const at::Tensor& tensor, const Reduction& op);
Call check_reduce_scatter(const Communicator& group, const at::Tensor& output, const at::Tensor& input,
                          const Reduction& op, Counts counts);
Call check_all_gather(const Communicator& group, const at::Tensor& output, const at::Tensor& input, Counts counts);
Call check_gather(const Communicator& group, const at::Tensor& output, const at::Tensor& input, int root,
                  Counts counts);
Call check_scatter(const Communicator& group, const at::Tensor& output, const at::Tensor& input, int root,
                   Counts counts);
Call check_all_to_all(const Communicator& group, const at::Tensor& output, const at::Tensor& input,
                      Counts output_counts, Counts input_counts);
Call check_send(const Communicator& group, const at::Tensor& tensor, int peer, int tag);
Call check_recv(const Communicator& group, const at::Tensor& tensor, int peer, int tag);

}  // namespace phalanx
