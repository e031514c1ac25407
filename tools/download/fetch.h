// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace phalanx {

/// A file that some servers have.
struct RemoteFile {
  std::string name;                  // here
  std::string sha256;                // in hexadecimal digits
  std::int64_t most_bytes = 0;       // a server that has a larger file has another one
  std::vector<std::string> mirrors;  // addresses, tried in this order
};

/// A dataset that can be downloaded.
struct KnownSet {
  std::string name;
  std::string folder;  // below ${PHALANX_DATA} or data, where the dataset looks
  std::vector<RemoteFile> files;
  std::string unpack;  // what is left to do, as a command in the folder; empty: nothing
};

const std::vector<KnownSet>& known_sets();

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
