// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

/// Combined send and receive. Communicator::send and recv are the two halves; since they return a Work, they correspond
/// to isend and irecv, and with wait() to the blocking forms.
namespace phalanx {

/// Sends the elements of `output` to rank `to` and receives from rank `from` into `input`. The tensors may differ in
/// number of elements and dtype, but must not overlap. Either peer may be this rank. Like send and recv, it is not
/// ordered with other operations. It completes when both halves are complete. Errors are as for Communicator::send and
/// recv; if both halves fail, the error of recv is reported.
Work send_recv(Communicator& group, at::Tensor input, at::Tensor output, int to, int from, int tag = 0);

/// In place: sends `tensor` to rank `to` and replaces it by the message from rank `from`. The copy that is sent is made
/// before this function returns. Example of a shift around a ring:
///
///   send_recv(*world, tensor, (rank + 1) % size, (rank + size - 1) % size).wait();
Work send_recv(Communicator& group, at::Tensor tensor, int to, int from, int tag = 0);

}  // namespace phalanx
