// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/memory_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/write_all.h"

namespace phalanx {

MemoryFile::MemoryFile(std::string_view contents) : file_(::memfd_create("phalanx-carried", MFD_CLOEXEC)) {
  const int error = file_.valid() ? write_all(file_.get(), contents) : errno;
  if (error != 0) throw DataError("state cannot be kept in memory: " + std::generic_category().message(error));
}

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

std::string broadcast_bytes(std::string_view own, int source, Communicator& world) {
  const at::Tensor length = at::full({1}, static_cast<std::int64_t>(own.size()), at::kLong);
  world.broadcast(length, source).wait();
  at::Tensor bytes = at::empty({length.item<std::int64_t>()}, at::kByte);
  auto* const data = reinterpret_cast<char*>(bytes.data_ptr<std::uint8_t>());
  if (world.rank() == source) std::ranges::copy(own, data);
  if (bytes.numel() > 0) world.broadcast(bytes, source).wait();
  return {data, static_cast<std::size_t>(bytes.numel())};
}

}  // namespace phalanx
