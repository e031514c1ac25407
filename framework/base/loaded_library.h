#pragma once

#include <string>

namespace phalanx {

/// The folder of a shared library that this process has loaded, by its file name: "libtorch_cpu.so". Empty: it has not.
std::string folder_of_loaded(const std::string& library);

}  // namespace phalanx
