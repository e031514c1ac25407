// SPDX-License-Identifier: Apache-2.0
#include "tools/dashboard/served_files.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxBytes = std::uintmax_t{256} << 20;
constexpr const char *kFirstPage = "/report/index.html", *kPlain = "text/plain; charset=utf-8";

const std::map<std::string, std::string> kTypes{{".css", "text/css; charset=utf-8"},
                                                {".html", "text/html; charset=utf-8"},
                                                {".js", "text/javascript; charset=utf-8"},
                                                {".json", "application/json"},
                                                {".png", "image/png"},
                                                {".svg", "image/svg+xml"}};

HttpResponse not_found() { return {.status = 404, .body = "404 Not Found\n"}; }

bool is_within(const fs::path& path, const fs::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

std::string add_events(std::string page) {
  const std::string body = "<body>";
  const auto at = page.find(body);
  return at == page.npos ? page
                         : page.replace(at, body.size(), std::string("<body data-events=\"") + kEventsPath + "\">");
}

}  // namespace

ServedFiles::ServedFiles(const std::string& folder) {
  std::error_code error;
  folder_ = fs::canonical(folder, error);
  if (error) throw DataError(folder + ": " + error.message());
}

HttpResponse ServedFiles::answer(const std::string& path) const {
  if (path == "/" || path == "/report" || path == "/report/") return {.status = 302, .location = kFirstPage};
  std::error_code error;
  const fs::path file = fs::canonical(folder_ / fs::path(path).relative_path(), error);
  if (error || !(is_within(file, folder_ / "report") || is_within(file, folder_ / "runs"))) return not_found();
  if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kMaxBytes || error) return not_found();
  const auto type = kTypes.find(file.extension());
  std::string text = read_file(file);
  if (path == kFirstPage) text = add_events(std::move(text));
  return {.content_type = type == kTypes.end() ? kPlain : type->second, .body = std::move(text)};
}

}  // namespace phalanx
