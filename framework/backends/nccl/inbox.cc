// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/inbox.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "framework/backends/nccl/collectives.h"
#include "framework/backends/nccl/connect.h"
#include "framework/base/error.h"

namespace phalanx::nccl {
namespace {

std::exception_ptr mismatch(const Message& message, std::int64_t sent) {
  return std::make_exception_ptr(
      CommError(CommError::Kind::kMismatch, message.describe() + ": expected " + std::to_string(message.bytes()) +
                                                " bytes, but rank " + std::to_string(message.call().peer) + " sent " +
                                                std::to_string(sent)));
}

bool fits(const Message& message, std::int64_t bytes) { return static_cast<std::int64_t>(message.bytes()) == bytes; }

}  // namespace

Inbox::Inbox(Setup setup) : MessageLink(std::move(setup), false) { start(); }

Inbox::~Inbox() {
  stop();
  for (auto& work : aside_) {
    try {
      work.synchronize();
    } catch (const CommError&) {  // the group reports its error where a message is waited for
    }
  }
}

void Inbox::hear(void* data, std::size_t size) {
  const at::Tensor bytes = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
  setup().host->recv(bytes, setup().peer, kLinkTag).wait();
  std::memcpy(data, bytes.data_ptr(), size);
}

void Inbox::serve() {
  if (!is_connected()) {
    ncclUniqueId id{};
    hear(&id, sizeof(id));
    connect(id);
  }
  Header header;
  hear(&header, sizeof(header));
  const std::lock_guard lock(mutex_);
  const MessagePtr message = take_posted(header.tag);
  if (message && fits(*message, header.bytes)) {
    message->take();
    message->launched(receive(message->tensor(), message->call(), message->origin()));
    return;
  }
  const at::Tensor bytes = receive_aside(header);
  if (message) return message->fail(mismatch(*message, header.bytes));
  unexpected_.push_back({header.tag, bytes});
}

MessagePtr Inbox::take_posted(std::int64_t tag) {
  const auto found = std::ranges::find_if(posted_, [&](const auto& message) { return message->call().tag == tag; });
  if (found == posted_.end()) return nullptr;
  MessagePtr message = *found;
  posted_.erase(found);
  return message;
}

Work Inbox::receive(const at::Tensor& tensor, const Call& call, const Group::Origin& origin) {
  return group().launch(
      call, {tensor},
      {.calls = [&](ncclComm_t comm, cudaStream_t stream) { recv_bytes({comm, stream, 1, 2}, tensor, 0); },
       .after = [](ncclComm_t, cudaStream_t) {}},
      origin);
}

// The memory belongs to the link's stream, so it may be freed as soon as the work that uses it has been launched.
at::Tensor Inbox::receive_aside(const Header& header) {
  const c10::cuda::CUDAStreamGuard on_stream(group().stream());
  while (!aside_.empty() && aside_.front().done()) aside_.pop_front();
  const auto options = at::device(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(setup().device)));
  const at::Tensor bytes = at::empty({header.bytes}, options.dtype(at::kByte));
  const Call call{.elements = header.bytes,
                  .peer = setup().peer,
                  .tag = static_cast<std::int32_t>(header.tag),
                  .op = Op::kRecv,
                  .dtype = at::kByte};
  aside_.push_back(receive(bytes, call, {.stream = group().stream(), .launched = {}, .ticket = {}}));
  return bytes;
}

bool Inbox::take_at_once(const MessagePtr& message) {
  const auto found =
      std::ranges::find_if(unexpected_, [&](const auto& other) { return other.tag == message->call().tag; });
  if (found == unexpected_.end()) return false;
  const at::Tensor bytes = std::exchange(found->bytes, {});
  unexpected_.erase(found);
  if (!fits(*message, bytes.numel())) {
    message->fail(mismatch(*message, bytes.numel()));
    return true;
  }
  const at::Tensor tensor = message->tensor();
  message->take();
  message->launched(group().launch(message->call(), {tensor, bytes},
                                   {.calls = [](ncclComm_t, cudaStream_t) {},
                                    .after =
                                        [&](ncclComm_t, cudaStream_t) {
                                          const at::NoGradGuard no_grad;
                                          if (tensor.numel() == 0) return;
                                          tensor.view({-1}).view(at::kByte).copy_(bytes, /*non_blocking=*/true);
                                        }},
                                   message->origin()));
  return true;
}

std::string Inbox::hint() const {
  if (unexpected_.empty()) return "";
  std::string text = "; messages that no receive has asked for came with tag";
  for (const auto& message : unexpected_) text += " " + std::to_string(message.tag);
  return text;
}

}  // namespace phalanx::nccl
