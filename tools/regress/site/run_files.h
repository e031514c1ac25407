// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace phalanx::site {

/// The place of the files of runs. Paths in the database are relative to its folder, or absolute.
struct RunFiles {
  std::filesystem::path database_folder;
  std::filesystem::path site;  // folder of the pages

  std::filesystem::path path_of(const std::string& stored) const { return database_folder / stored; }

  /// Returns a link from a page to a file, with the characters escaped that mean something in an address. Empty if
  /// there is no such file.
  std::string link_to(const std::string& stored) const;
};

}  // namespace phalanx::site
