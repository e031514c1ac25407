// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/group.h"
#include "framework/backends/mpi/layout.h"
#include "framework/comm/operations/operation.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// A collective while it runs. It owns all memory that MPI reads or writes until the collective is complete. Moving an
/// Execution does not move that memory.
struct Execution {
  std::shared_ptr<Group> group;
  Operation operation;
  std::uint64_t sequence;
  Seconds timeout;

  Layout layout{};  // of the tensor that has parts; for all_to_all, of the input
  Layout output_layout{};
  at::Tensor scratch{};

  std::string where() const { return group->where(operation.call.op, sequence); }
  void expect_success(int code) const {
    if (code != MPI_SUCCESS) group->check(code, where());
  }

  /// Calls start(comm, request), which makes a nonblocking MPI call and returns its code, and blocks until the call is
  /// complete.
  template <class Start>
  void complete(const Start& start) {
    MPI_Request request = MPI_REQUEST_NULL;
    expect_success(start(group->comm(), &request));
    const auto ready = [&] {
      int flag = 0;
      expect_success(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
      if (flag == 0 && group->any_ended()) group->throw_if_ended(Group::kAny, where());
      return flag != 0;
    };
    group->wait(ready, timeout, [this] { return where(); }, [] { return std::string("ranks that did not come"); });
  }

  /// Does the same for elements that are independent of each other, with as many calls of start(data, count, comm,
  /// request) as needed. There is one call even for zero elements, since the calls of all ranks must match.
  template <class Start>
  void complete_all(const at::Tensor& tensor, const Start& start) {
    auto* data = static_cast<std::byte*>(tensor.data_ptr());
    std::int64_t first = 0;
    do {
      const auto count = std::min(tensor.numel() - first, group->options().max_elements);
      complete([&](MPI_Comm comm, MPI_Request* request) {
        return start(data + first * tensor.element_size(), static_cast<int>(count), comm, request);
      });
      first += count;
    } while (first < tensor.numel());
  }
};

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
