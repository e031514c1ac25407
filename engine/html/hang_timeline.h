// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/observe/hang/picture.h"

namespace phalanx {

/// Returns as HTML why a job stood still: the sentence (explain()), a timeline with a row for each rank and its last
/// operations on a common axis of time, and a table of what the ranks did. Ranks that wait and ranks that have not come
/// are marked, and so is the operation in which ranks differ. If the wait is much longer than the operations before it,
/// the axis has a break. At most 32 ranks are drawn, first those that have not come. to_page() adds the style; there is
/// no script.
std::string to_hang(const JobPicture& picture);

/// Returns a whole page with the same, for a picture that belongs to no run folder. `source` is its file.
std::string to_hang_page(const JobPicture& picture, const std::string& source);

}  // namespace phalanx
