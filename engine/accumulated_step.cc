#include "engine/accumulated_step.h"

#include <algorithm>

#include "engine/part_results.h"

namespace phalanx {

Step::Result AccumulatedStep::run(const Batch& batch, const Watch& watch) {
  const std::int64_t rows = batch.input.size(0);
  const auto unwatched = [](Stage, const Result&) {};
  PartResults results;
  for (std::int64_t i = 0; i < parts_; ++i) {
    const auto begin = rows * i / parts_, end = rows * (i + 1) / parts_;
    Batch part = rows_of(batch, begin, std::max(end, begin + 1));
    if (begin == end) part.valid = 0;
    const Result result = step_.run(part, unwatched);
    if (begin < end) results.add(result, part.valid);
  }
  const Result whole = results.whole();
  tell_step(watch, whole);
  return whole;
}

}  // namespace phalanx
