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

}  // namespace phalanx::ps
