// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Returns a whole page around `body`, which is HTML. It has a style, light or dark as the reader prefers, and a script
/// that shows the values of charts under the pointer. The page refers to no other files.
std::string to_page(const std::string& title, const std::string& body);

/// Returns a section of a page. Empty if there is no content.
std::string to_section(const std::string& title, const std::string& content);

/// Returns large numbers with their names: {{"97.5 %", "test accuracy"}, ...}.
std::string to_tiles(const std::vector<std::pair<std::string, std::string>>& tiles);

/// Returns a table; all cells are text. The first row is the head of the table, the first column has the names of rows.
std::string to_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace phalanx
