// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// A whole page around `body`, which is HTML: with its style, light or dark as the reader has it, and the script that
/// shows the values of charts under the pointer. It refers to nothing outside.
std::string to_page(const std::string& title, const std::string& body);

/// A section of it; empty without content.
std::string to_section(const std::string& title, const std::string& content);

/// Large numbers with what they are: {{"97.5 %", "test accuracy"}, ...}.
std::string to_tiles(const std::vector<std::pair<std::string, std::string>>& tiles);

/// A table; all cells are text. The first row is its head, the first column the names of rows.
std::string to_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace phalanx
