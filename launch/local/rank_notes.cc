// SPDX-License-Identifier: Apache-2.0
#include "launch/local/rank_notes.h"

#include "framework/base/error.h"
#include "launch/local/print_to_console.h"

namespace phalanx {

// A rank remains one, even if somebody removes the folder during a long job.
bool RankNotes::waits(int number) const {
  if (number < ranks_ || taking_part_.contains(number)) return false;
  if (!folder_.takes_part(number)) return true;
  taking_part_.insert(number);
  return false;
}

void RankNotes::note_end(int number) const {
  try {
    folder_.note_end(number);
  } catch (const Error& error) {
    print_to_console("Rank " + std::to_string(number) +
                     " has ended, of which the others are not told: " + error.what());
  }
}

}  // namespace phalanx
