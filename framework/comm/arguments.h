#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstdint>

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

/// Where each rank's part begins and how long it is, in elements. Made of `counts`, or of P equal parts of `total`.
class Parts {
 public:
  Parts(Counts counts, int ranks, std::int64_t total);

  std::int64_t count(int rank) const { return begins_[rank + 1] - begins_[rank]; }
  std::int64_t begin(int rank) const { return begins_[rank]; }
  std::int64_t total() const { return begins_.back(); }
  int ranks() const { return static_cast<int>(begins_.size()) - 1; }

  /// A rank's part of a contiguous tensor of total() elements: a view of one dimension.
  at::Tensor of(const at::Tensor& tensor, int rank) const;

 private:
  c10::SmallVector<std::int64_t, 17> begins_;
};

/// Elements [begin, begin + count) of a contiguous tensor: a view of one dimension, without autograd.
at::Tensor elements_of(const at::Tensor& tensor, std::int64_t begin, std::int64_t count);

}  // namespace phalanx
