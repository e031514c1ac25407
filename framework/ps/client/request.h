// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "framework/comm/operations/part_layout.h"
#include "framework/ps/protocol/message.h"

namespace phalanx::ps {

/// A request of a client to one server. While it is in flight, it is protected by the lock of its Link.
struct Request {
  Message message{};                                                     // without a payload
  at::Tensor tensor{};                                                   // belongs to the request until finished
  Transfer transfer{};                                                   // bytes of `tensor` to send and return
  std::string what{};                                                    // for errors, e.g. "push of table weights"
  std::function<void(const Header& reply)> done = [](const Header&) {};  // called with the link's lock held

  at::Tensor update{};  // copy of the values sent, if the reply may overwrite them
  bool finished = false;
  std::exception_ptr error{};
  Message reply{};
};
using RequestPtr = std::shared_ptr<Request>;

/// Returns `count` bytes of a contiguous tensor, starting at byte `begin`. Both must be multiples of the element size.
inline at::Tensor byte_range(const at::Tensor& tensor, std::uint64_t begin, std::uint64_t count) {
  const auto size = static_cast<std::uint64_t>(tensor.element_size());
  return elements_of(tensor, static_cast<std::int64_t>(begin / size), static_cast<std::int64_t>(count / size));
}

/// Return what a request sends, and where its answer is written. Undefined if nothing is.
inline at::Tensor sent_by(const Request& request) {
  return request.transfer.sent == 0 ? at::Tensor() : byte_range(request.tensor, 0, request.transfer.sent);
}
inline at::Tensor returned_to(const Request& request) {
  const Transfer& transfer = request.transfer;
  return transfer.returned == 0 ? at::Tensor() : byte_range(request.tensor, transfer.returned_at, transfer.returned);
}

}  // namespace phalanx::ps
