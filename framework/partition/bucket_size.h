// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The time of an all-reduce: latency + bytes * seconds_per_byte (Hockney's model of a message, 1994).
struct ReductionTime {
  double latency = 0;  // seconds
  double seconds_per_byte = 0;
};

/// Measures the time of an all-reduce on this group, with float32 tensors on `device`: 16 KB and 1 MB on the CPU, and
/// 256 KB and 16 MB elsewhere. Each size runs once to warm up and then nine times; the median of the slowest rank
/// counts. Collective; all ranks return the same.
ReductionTime measure_all_reduce(Communicator& group, c10::Device device);

/// Returns the best size of buckets if `bytes` of gradients are all-reduced bucket by bucket while backward computes
/// the next bucket. B buckets cost B times the latency. The last one, of bytes / B bytes, has no computation left to
/// hide it. B * latency + bytes / B * seconds_per_byte is least for buckets of sqrt(bytes * latency /
/// seconds_per_byte), as for the blocks of a pipelined broadcast (Watts, van de Geijn 1995); MG-WFBP (Shi, Chu, Li
/// 2019) merges gradients by the same model. The result is the nearest power of two: two runs whose measurements differ
/// a little then mostly have the same buckets, and it costs at most 6 % more than the minimum. It is at least 64 KB,
/// and at most the power of two that holds all of `bytes`.
std::int64_t best_bucket_bytes(std::int64_t bytes, const ReductionTime& time);

/// Returns the size that is used without a measurement, so that two runs have the same buckets. In shared memory, on
/// devices, and if buckets are sent after backward, only a small number of buckets matters: 25 MB. If buckets in the
/// host's memory are sent to other hosts during backward (`overlapped`), it is best_bucket_bytes() for TCP over 1
/// Gbit/s (docs/benchmarks.md), which is 1 MB for ResNet-18. A faster link has a proportionally lower latency, so this
/// is near the best size there too.
std::int64_t default_bucket_bytes(std::int64_t bytes, bool overlapped, c10::Device device);

}  // namespace phalanx
