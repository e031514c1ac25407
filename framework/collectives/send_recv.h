// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

/// Both halves of an exchange at once. Communicator::send and recv are the halves; since they return a Work they are
/// isend and irecv, and with wait() send and recv.
namespace phalanx {

/// `output`'s elements go to rank `to`, and what comes from rank `from` goes into `input`. Tensors may differ in number
/// of elements and dtype, but must not overlap; either peer may be this rank. Like send and recv it is not ordered with
/// other operations. It completes when both halves have. Errors are those of Communicator::send and recv; when both
/// halves fail, that of recv.
Work send_recv(Communicator& group, at::Tensor input, at::Tensor output, int to, int from, int tag = 0);

/// In place: `tensor` is sent to rank `to` and replaced by what comes from rank `from`. The copy that is sent is made
/// at once. Around a ring:
///
///   send_recv(*world, tensor, (rank + 1) % size, (rank + size - 1) % size).wait();
Work send_recv(Communicator& group, at::Tensor tensor, int to, int from, int tag = 0);

}  // namespace phalanx
