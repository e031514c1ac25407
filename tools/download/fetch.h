// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace phalanx {

/// A file that some servers provide.
struct RemoteFile {
  std::string name;                  // name in the local folder
  std::string sha256;                // hexadecimal digits
  std::int64_t max_bytes = 0;        // a larger file on a server is assumed to be a different one
  std::vector<std::string> mirrors;  // URLs, tried in this order
};

/// A dataset that can be downloaded.
struct KnownSet {
  std::string name;
  std::string folder;  // below ${PHALANX_DATA} or data, where the dataset expects its files
  std::vector<RemoteFile> files;
  std::string unpack;  // remaining step, as a command in the folder; empty: none
};

const std::vector<KnownSet>& known_sets();

struct FetchOptions {
  double timeout = 60;  // seconds without data after which a server is abandoned
  std::function<void(std::int64_t have, std::int64_t size)> progress = [](auto, auto) {};  // bytes
};

/// Downloads the file to `folder`/NAME and verifies its checksum. Returns false if the file was already there. Received
/// bytes are kept in NAME.part, from which a later call resumes with any mirror. If a server closes the connection, it
/// is asked again as long as there is progress. After that, or if a file is too large or has another checksum, the next
/// mirror is tried. Throws DataError with the failure of each mirror, if `folder` cannot be
/// written (a full disk), or if `folder`/NAME exists with another checksum.
bool fetch(const RemoteFile& file, const std::filesystem::path& folder, const FetchOptions& options);

}  // namespace phalanx
