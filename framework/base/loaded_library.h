// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// The folder of a shared library that this process has loaded, by its file name: "libtorch_cpu.so". Empty: it has not.
std::string folder_of_loaded(const std::string& library);

/// What the dynamic linker says of the failure of the last dlopen() or dlsym() of this thread; it fits on a line.
std::string link_error();

}  // namespace phalanx
