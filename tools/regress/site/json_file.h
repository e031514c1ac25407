// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace phalanx::site {

using Json = nlohmann::ordered_json;

/// The data files of a site. A browser that opens a page from disk may run scripts of the same folder but not read
/// files, so each file is a script that passes its value to the page: receive("nights/12", {...}).
class DataFolder {
 public:
  /// Creates the folder. `identity` names the database; files of another database or another version of the program are
  /// removed. Throws DataError.
  DataFolder(std::string path, const std::string& identity);

  bool has(const std::string& name) const;

  /// Writes a value under a name such as "nights/12", unless the file already has this value. Throws DataError.
  void write(const std::string& name, const Json& value) const;

 private:
  std::string path_of(const std::string& name) const { return path_ + "/" + name + ".js"; }

  std::string path_;
};

/// Writes a file, unless it already has this text. Throws DataError.
void write_if_changed(const std::string& path, const std::string& text);

/// Returns the value with six significant digits, or null if it is not finite: JSON has no such numbers.
Json rounded(double value);

}  // namespace phalanx::site
