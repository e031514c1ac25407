// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/parallel/pipeline/timeline.h"

namespace phalanx {

/// A timeline as lines of text, a rank each, `width` letters wide, or a little more: time goes to the right, and goes
/// on below where a line is full. F forward, B gradient of the input, W gradient of the weights, D both.
std::string to_text(const pipeline::Schedule& schedule, const pipeline::Timeline& timeline, int width);

/// The same as a picture, with numbers of micro-batches, and a legend.
std::string to_svg(const pipeline::Schedule& schedule, const pipeline::Timeline& timeline);

/// The same as data: {"name", "ranks", "stages", "micro_batches", "length", "bubble", "bubble_without_stop", "live",
/// "actions": by rank, [{"kind", "stage", "micro_batch", "begin", "end"}, ...]}.
std::string to_json(const pipeline::Schedule& schedule, const pipeline::Timeline& timeline);

}  // namespace phalanx
