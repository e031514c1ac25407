// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "framework/base/http/http_server.h"

namespace phalanx {

/// The path at which the dashboard serves its events.
inline constexpr const char* kEventsPath = "/events";

/// The files of a nightly that a browser may read: the pages in report/ and the run folders in runs/. Nothing outside
/// of these two is served, neither through ".." nor through links.
class ServedFiles {
 public:
  /// `folder` must exist. Throws DataError.
  explicit ServedFiles(const std::string& folder);

  /// Returns the file of a path such as "/report/index.html", or status 404. "/" leads to the first page. index.html
  /// gets the address of the events, from which it knows that it is served by the dashboard.
  HttpResponse answer(const std::string& path) const;

 private:
  std::filesystem::path folder_;  // canonical
};

}  // namespace phalanx
