// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "framework/testing/fake_cuda/nccl_segment.h"
#include "framework/testing/fake_device/access_table.h"

namespace phalanx::testing {

/// A call of NCCL. Counts are those of the call: of one part for reduce_scatter and all_gather.
struct NcclCall {
  enum class Kind { kBroadcast, kReduce, kAllReduce, kReduceScatter, kAllGather, kSend, kRecv };

  std::string_view name;
  Kind kind;
  const void* from;
  void* to;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;  // or root
  cudaStream_t stream;
};

/// Returns the size of an element, or 0 for a type that the fake does not have.
std::size_t size_of(ncclDataType_t type);

/// Returns the memory of the device that a rank's call reads and writes.
std::vector<Access> accesses_of(const NcclCall& call, int rank, int ranks);

/// The calls of one group as one kernel: it exchanges bytes with the kernels of the other ranks, which must call the
/// same. If they do not, it never ends. All ranks get the same bits, but not those of a sum in the order of ranks. If
/// only some of the ranks have captured it into a graph, it never ends either, and the segment has the error.
class NcclOperation {
 public:
  NcclOperation(std::shared_ptr<NcclSegment> segment, int rank, int ranks, const std::vector<NcclCall>& calls,
                bool captured);

  /// Moves what can be moved. Returns true once the operation is complete. Never blocks.
  bool progress();

 private:
  // Both ranks must have the same.
  struct Header {
    std::uint64_t bytes = 0, captured = 0;
    bool operator==(const Header&) const = default;
  };
  // Bytes to or from another rank, after a header.
  struct Transfer {
    bool sends;
    int peer;
    std::byte* data;
    std::size_t bytes;
    std::size_t done = 0;  // bytes of header and data
    Header header{};       // as received
    bool is_complete() const { return done == sizeof(header) + bytes; }
  };
  struct Step {
    std::vector<Transfer> transfers;
    std::function<void()> finish;  // once all of them are complete
    bool finished = false;
  };

  void plan(const NcclCall& call);
  void plan_reduction(const NcclCall& call, Step& step, bool gets_result);
  void move(Transfer& transfer);
  std::byte* scratch(std::size_t bytes);

  std::shared_ptr<NcclSegment> segment_;
  int rank_, ranks_;
  bool captured_;
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
};

}  // namespace phalanx::testing
