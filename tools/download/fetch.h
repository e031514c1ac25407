// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "tools/download/known.h"

namespace phalanx {

struct FetchOptions {
  double timeout = 60;  // seconds of silence after which a server is given up
  std::function<void(std::int64_t have, std::int64_t size)> progress = [](auto, auto) {};  // bytes
};

/// Makes `folder`/NAME the file, whose checksum is right: false where it was that already. What comes is kept in
/// NAME.part, which a later call goes on with, from any mirror. A server that cuts the connection is asked again while
/// it goes on at all; after that, and after a file that is too large or has another checksum, comes the next mirror.
/// Throws DataError: what each mirror has done, or that `folder` cannot be written (a full disk).
bool fetch(const RemoteFile& file, const std::filesystem::path& folder, const FetchOptions& options);

}  // namespace phalanx
