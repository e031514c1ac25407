// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <cstddef>
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
/// same. If they do not, it never ends. All ranks get the same bits, but not those of a sum in the order of ranks.
class NcclOperation {
 public:
  NcclOperation(std::shared_ptr<NcclSegment> segment, int rank, int ranks, const std::vector<NcclCall>& calls);

  /// Moves what can be moved. Returns true once the operation is complete. Never blocks.
  bool progress();

 private:
  // Bytes to or from another rank, after a header that says how many they are.
  struct Transfer {
    bool sends;
    int peer;
    std::byte* data;
    std::size_t bytes;
    std::size_t done = 0;    // bytes of header and data
    std::size_t header = 0;  // as received
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
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
};

}  // namespace phalanx::testing
