#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// The last `count` lines of a file that are not empty. Reads only the file's end, so a log of any length will do.
/// None when there is no such file: a log is a help, never a reason to fail.
std::vector<std::string> last_lines(const std::string& path, int count);

}  // namespace phalanx
