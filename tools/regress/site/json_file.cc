// SPDX-License-Identifier: Apache-2.0
#include "tools/regress/site/json_file.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/text.h"

namespace phalanx::site {
namespace {

constexpr const char* kFormat = "1";  // changes with the contents of data files

void create_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw DataError(path + ": cannot be created: " + error.message());
}

std::string text_of(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path, none) ? read_file(path) : "";
}

// Replaces a file in one step, so that no page reads half of it. Unlike write_atomically(), does not wait until the
// text is on the disk: thousands of files would take minutes, and they can be written again.
void replace(const std::string& path, const std::string& text) {
  const std::string temporary = path + "." + std::to_string(::getpid()) + ".new";
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  if (!file || error) throw DataError(path + ": cannot be written");
}

}  // namespace

DataFolder::DataFolder(std::string path, const std::string& identity) : path_(std::move(path)) {
  const std::string stamp = path_ + "/of", wanted = std::string(kFormat) + " " + identity + "\n";
  std::error_code none;
  if (text_of(stamp) != wanted) std::filesystem::remove_all(path_, none);
  for (const char* part : {"", "/nights", "/cases", "/runs", "/configs"}) create_folder(path_ + part);
  write_if_changed(stamp, wanted);
}

bool DataFolder::has(const std::string& name) const {
  std::error_code none;
  return std::filesystem::exists(path_of(name), none);
}

void DataFolder::write(const std::string& name, const Json& value) const {
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  write_if_changed(path_of(name), "receive(\"" + name + "\"," + text + ");\n");
}

void write_if_changed(const std::string& path, const std::string& text) {
  if (text_of(path) != text) replace(path, text);
}

Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(format_text("%.6g", value).c_str(), nullptr);
}

}  // namespace phalanx::site
