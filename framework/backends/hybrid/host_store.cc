// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/host_store.h"

#include <stdlib.h>

#include <string>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/comm/texts.h"

namespace phalanx::hybrid {
namespace {

namespace fs = std::filesystem;

// Returns an empty string if no folder can be created, so that the other ranks learn it in the same message.
std::string make_folder() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  std::string folder = (place / "phalanx-hybrid.XXXXXX").string();
  if (error || ::mkdtemp(folder.data()) == nullptr) return "";
  return folder;
}

}  // namespace

HostStore::HostStore(const Level& hosts, const ConnectOptions& options) {
  if (options.store) {
    store_ = make_prefix_store("hybrid/host/" + std::to_string(hosts.group), options.store);
    return;
  }
  auto& host = *hosts.intra;
  if (hosts.leads()) folder_ = make_folder();
  const std::string folder = broadcast_text(folder_.string(), host);
  if (folder.empty()) {
    throw CommError(CommError::Kind::kSystem, "backend hybrid: the ranks of " + host_name() +
                                                  " cannot meet: a temporary folder cannot be created; set "
                                                  "TMPDIR to a writable folder");
  }
  store_ = make_file_store(folder + "/store", host.size(), options.timeout);
}

// The last rank that leaves a file store removes its file, or creates it again if it is already gone. So all ranks must
// leave before the folder is removed.
void HostStore::close(Communicator& host) {
  if (folder_.empty()) store_.reset();
  host.barrier().wait();
  remove();
}

void HostStore::remove() {
  store_.reset();
  std::error_code ignored;  // another process may have removed it already
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace phalanx::hybrid
