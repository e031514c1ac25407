// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Returns the folder of a shared library that this process has loaded, given its file name such as "libtorch_cpu.so".
/// Returns an empty string if it is not loaded.
std::string folder_of_loaded(const std::string& library);

/// Returns the folder of the plug-ins that are installed with libphalanx.so: `phalanx` in the folder of the library.
/// Where this code is part of a program, the folder is next to the program and usually does not exist.
std::string plugin_folder();

/// Returns the dynamic linker's message for the last dlopen() or dlsym() of this thread that failed, on one line.
std::string link_error();

}  // namespace phalanx
