// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/history/database.h"

namespace phalanx {

/// Writes the pages of all nights in the database to `folder`: index.html, which opens from disk without a server, and
/// the data that it loads when a reader asks for it. Creates the folder. If it has pages already, only new nights and
/// runs are read from the disk. Logs and run folders are found relative to the folder of the database; the pages link
/// to them in the same way, so that both folders can be moved together. Throws DataError if a file cannot be written.
/// Logs and run folders that are missing or malformed are named on the page instead.
void write_site(history::Database& database, const std::string& folder);

}  // namespace phalanx
