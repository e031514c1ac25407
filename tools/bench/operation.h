// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/operations/call.h"

namespace phalanx::bench {

/// An operation that can be measured. Sizes and bandwidths are defined as in nccl-tests, so that figures can be
/// compared.
struct MeasuredOperation {
  const char* name;
  Op op;                            // kCustom for an operation that is not a collective: send_recv, launch
  const char* bytes;                // describes the tensor whose size --bytes sets; empty: the operation has no tensor
  bool partitioned;                 // true if that tensor has an equal part for each rank
  double (*bus_factor)(int ranks);  // bytes over the busiest link per byte of that tensor
};

/// Returns all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, scatter, send_recv, barrier
/// and launch.
///
/// send_recv is a ping-pong between ranks 2k and 2k + 1, all pairs at once; its time is half a round trip. launch is
/// the time that the caller spends on launching an asynchronous all_reduce, without waiting for it.
const std::vector<MeasuredOperation>& operations();

/// Throws std::out_of_range if there is no operation of this name.
const MeasuredOperation& find_operation(const std::string& name);

std::vector<std::string> operation_names();

/// The root rank of operations that have one.
inline constexpr int kRoot = 0;

/// One combination to measure.
struct Case {
  std::string op;
  std::string algorithm = "native";  // native: the subject's own; otherwise the name of a registered algorithm
  std::string memory = "private";    // registered: from allocate(), or the subject's own kind of registered memory
  std::int64_t bytes = 0;            // as requested, not rounded
};

/// Sizes of the float32 buffers of a case.
struct Sizes {
  std::int64_t whole = 0;  // elements of the tensor whose size `bytes` sets: at least one, rounded up so that all ranks
                           // have parts of equal size
  std::int64_t part = 0;   // elements of a rank's part; equals `whole` if the operation does not divide the tensor

  std::int64_t bytes() const { return whole * static_cast<std::int64_t>(sizeof(float)); }
};
Sizes sizes_of(const Case& what, int ranks);

}  // namespace phalanx::bench
