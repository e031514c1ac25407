// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "framework/comm/communicator.h"

namespace phalanx {

/// What an all-reduce takes: latency + bytes * seconds_per_byte (Hockney 1994's model of a message).
struct ReductionTime {
  double latency = 0;  // seconds
  double seconds_per_byte = 0;
};

/// Measures it on this group, with 16 KB and 1 MB of float32: ten times each, the median of the slowest rank.
/// Collective; all ranks return the same.
ReductionTime measure_all_reduce(Communicator& group);

/// How large buckets should be where `bytes` of gradients are all-reduced bucket by bucket while backward makes the
/// next: B buckets cost B times the latency in all, and the last one, which nothing is left to hide, is bytes / B long.
/// B * latency + bytes / B * seconds_per_byte is least for buckets of sqrt(bytes * latency / seconds_per_byte), as for
/// the blocks of a pipelined broadcast (Watts, van de Geijn 1995); MG-WFBP (Shi, Chu, Li 2019) merges gradients by the
/// same model. Returned is the power of two that is nearest to it: two runs whose measurements differ a little mostly
/// have the same buckets then, and it costs 6 % of that least at most. Not below 64 KB, and not above the power of two
/// that holds all of `bytes`.
std::int64_t best_bucket_bytes(std::int64_t bytes, const ReductionTime& time);

/// The size where nothing is measured, so that two runs have the same buckets. In memory that the ranks share, and
/// where buckets are sent after backward, all that counts is that there are few: 25 MB. Where they are sent to other
/// hosts during backward (`overlapped`): best_bucket_bytes() for TCP over 1 Gbit/s (docs/benchmarks.md), which is 1 MB
/// for ResNet-18. On a faster link the latency is less in proportion, so that this is near the best there too.
std::int64_t default_bucket_bytes(std::int64_t bytes, bool overlapped);

}  // namespace phalanx
