// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/call.h"

namespace phalanx::bench {

/// An operation that can be measured. Sizes and bandwidths are those of nccl-tests, so that figures can be compared.
struct MeasuredOperation {
  const char* name;
  Op op;                            // kCustom for what is no collective of its own: send_recv, launch
  const char* bytes;                // the tensor that --bytes speaks of; empty: has none
  bool divided;                     // that tensor has an equal part for each rank
  double (*bus_factor)(int ranks);  // bytes over the busiest link, for each byte of that tensor
};

/// all_reduce, broadcast, reduce, all_gather, reduce_scatter, all_to_all, gather, scatter, send_recv, barrier, launch.
///
/// send_recv is a ping-pong of ranks 2k and 2k + 1, all pairs at once; its time is half a round trip. launch is what it
/// costs the caller to launch an asynchronous all_reduce, without waiting for it.
const std::vector<MeasuredOperation>& operations();

/// Throws std::out_of_range.
const MeasuredOperation& find_operation(const std::string& name);

std::vector<std::string> operation_names();

/// The root of operations that have one.
inline constexpr int kRoot = 0;

/// One combination to measure.
struct Case {
  std::string op;
  std::string algorithm = "native";  // the subject's own, or the name of one that is registered
  std::string memory = "private";    // registered: from allocate(), or whatever the subject has of that kind
  std::int64_t bytes = 0;            // as asked for
};

/// Buffers of a case, in float32.
struct Sizes {
  std::int64_t whole = 0;  // elements of the tensor that `bytes` speaks of, at least one, rounded up so that all ranks
                           // have parts of one size
  std::int64_t part = 0;   // elements of a rank's part; of an operation that divides nothing: whole

  std::int64_t bytes() const { return whole * static_cast<std::int64_t>(sizeof(float)); }
};
Sizes sizes_of(const Case& what, int ranks);

}  // namespace phalanx::bench
