// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/partition/pipeline/timeline.h"

namespace phalanx {

/// Returns a timeline as lines of text, one for each rank, `width` letters wide or slightly wider. Time goes to the
/// right, and continues below when a line is full. F: forward, B: gradient of the input, W: gradient of the weights, D:
/// both.
std::string to_text(const pipeline::Schedule& schedule, const pipeline::Timeline& timeline, int width);

/// Returns the timeline as a picture, with numbers of micro-batches and a legend.
std::string to_svg(const pipeline::Schedule& schedule, const pipeline::Timeline& timeline);

/// Returns the timeline as JSON: {"name", "ranks", "stages", "micro_batches", "length", "bubble",
/// "bubble_without_stop", "live", "actions": by rank, [{"kind", "stage", "micro_batch", "begin", "end"}, ...]}.
std::string to_json(const pipeline::Schedule& schedule, const pipeline::Timeline& timeline);

}  // namespace phalanx
