// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

}  // namespace phalanx
