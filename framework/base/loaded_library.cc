// SPDX-License-Identifier: Apache-2.0
#include "framework/base/loaded_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <filesystem>

namespace phalanx {

std::string folder_of_loaded(const std::string& library) {
  struct Search {
    const std::string& name;
    std::string folder;
  } search{library, {}};
  const auto look = [](dl_phdr_info* info, std::size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    const std::filesystem::path path(info->dlpi_name);
    if (path.filename() != wanted.name) return 0;
    wanted.folder = path.parent_path();
    return 1;
  };
  ::dl_iterate_phdr(look, &search);
  return search.folder;
}

std::string plugin_folder() {
  Dl_info file{};
  if (::dladdr(reinterpret_cast<const void*>(&plugin_folder), &file) == 0) return "phalanx";
  return std::filesystem::absolute(file.dli_fname).parent_path() / "phalanx";
}

std::string link_error() {
  const char* said = ::dlerror();
  return said != nullptr ? said : "it cannot be opened";
}

}  // namespace phalanx
