// SPDX-License-Identifier: Apache-2.0
#include "engine/step/accumulated_step.h"

#include <algorithm>

#include "engine/step/merged_results.h"

namespace phalanx {

Step::Result AccumulatedStep::run(const Batch& batch, const Watch& watch) {
  const std::int64_t rows = batch.rows();
  const std::int64_t parts = always_all_ ? parts_ : std::min(parts_, rows);
  MergedResults results;
  for (std::int64_t i = 0; i < parts; ++i) {
    const auto begin = rows * i / parts, end = rows * (i + 1) / parts;
    Batch part = rows_of(batch, begin, std::max(end, begin + 1));
    if (begin == end) part.valid = 0;
    const Result result = inner().run(part, ignore_stages);
    if (begin < end) results.add(result);
  }
  const Result whole = results.whole();
  report_step(watch, whole);
  return whole;
}

}  // namespace phalanx
