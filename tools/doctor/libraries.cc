// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/libraries.h"

// clang-format off
#include <mpi.h>
#include <mpi-ext.h>  // needs mpi.h before it
// clang-format on

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <features.h>
#include <gnu/libc-version.h>
#include <sqlite3.h>
#include <torch/headeronly/version.h>
#if !defined(PHALANX_WITHOUT_GLOO)
#include <gloo/barrier.h>
#include <gloo/config.h>
#endif
#if !defined(PHALANX_WITHOUT_SENTENCEPIECE)
#include <sentencepiece_processor.h>
#endif

#include <cstdint>
#include <sstream>
#include <typeinfo>

#include "framework/backends/mpi/abi/open_library.h"

namespace phalanx::doctor {
namespace {

std::string version(int major, int minor, int patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::string file_of(const void* symbol) {
  Dl_info info{};
  return ::dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Returns the entry of a library that was not installed when this program was built.
[[maybe_unused]] Library absent(const std::string& name, const std::string& package) {
  return {.name = name, .linked = "absent", .loaded = {}, .path = "install " + package + " and build again"};
}

Library torch() {
  Library library{.name = "LibTorch",
                  .linked = version(TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH),
                  .loaded = {},
                  .path = file_of(reinterpret_cast<const void*>(&at::show_config))};
  // The number has one byte each for major, minor and patch, from the highest. Older versions lack the function.
  if (const auto abi = reinterpret_cast<std::uint64_t (*)()>(::dlsym(RTLD_DEFAULT, "aoti_torch_abi_version"))) {
    const std::uint64_t number = abi();
    library.loaded = version(number >> 56, (number >> 48) & 0xff, (number >> 40) & 0xff);
  }
  return library;
}

// Returns the number from "Open MPI v5.0.11, package: ..., ident: 5.0.11, ...".
std::string loaded_mpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string full(text, static_cast<std::size_t>(length));
  const std::string known = "Open MPI v";
  const std::string first = full.substr(0, full.find_first_of(",\n"));
  return first.starts_with(known) ? first.substr(known.size()) : first;
}

Library mpi() {
  return {.name = "Open MPI",
          .linked = version(OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
          .loaded = loaded_mpi(),
          .path = file_of(reinterpret_cast<const void*>(&MPI_Init_thread))};
}

// Returns the MPI that backend mpi uses under an mpiexec other than Open MPI's, or an empty list.
std::vector<Library> mpi_with_abi() {
  const auto& opened = mpi::open_library();
  if (opened.handle == nullptr) return {};
  return {{.name = "MPI 5.0 ABI",
           .linked = "-",  // it is opened at run time
           .loaded = {},
           .path = file_of(::dlsym(opened.handle, "MPI_Init_thread"))}};
}

Library gloo() {
#if defined(PHALANX_WITHOUT_GLOO)
  return absent("Gloo", "libgloo-dev");
#else
  void (*const barrier)(::gloo::BarrierOptions&) = &::gloo::barrier;
  return {.name = "Gloo",
          .linked = version(GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH),
          .loaded = {},
          .path = file_of(reinterpret_cast<const void*>(barrier))};
#endif
}

Library sentence_piece() {
#if defined(PHALANX_WITHOUT_SENTENCEPIECE)
  return absent("SentencePiece", "libsentencepiece-dev");
#else
  return {.name = "SentencePiece",
          .linked = "-",  // its headers do not contain the version
          .loaded = {},
          .path = file_of(&typeid(sentencepiece::SentencePieceProcessor))};
#endif
}

Library sqlite() {
  return {.name = "SQLite",
          .linked = SQLITE_VERSION,
          .loaded = ::sqlite3_libversion(),
          .path = file_of(reinterpret_cast<const void*>(&::sqlite3_libversion))};
}

Library glibc() {
  return {.name = "glibc",
          .linked = std::to_string(__GLIBC__) + "." + std::to_string(__GLIBC_MINOR__),
          .loaded = ::gnu_get_libc_version(),
          .path = file_of(reinterpret_cast<const void*>(&::gnu_get_libc_version))};
}

}  // namespace

std::vector<Library> libraries() {
  std::vector<Library> all{torch(), mpi(), gloo(), sentence_piece(), sqlite(), glibc()};
  const auto others = mpi_with_abi();
  all.insert(all.begin() + 2, others.begin(), others.end());
  return all;
}

std::string cuda_aware_mpi() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1 ? "yes" : "no";
#else
  return "not reported by this MPI";
#endif
}

int cuda_devices() { return at::hasCUDA() ? static_cast<int>(at::getNumGPUs()) : -1; }

std::vector<std::string> torch_build() {
  std::vector<std::string> lines;
  std::istringstream config(at::show_config());
  for (std::string line; std::getline(config, line);) {
    const auto begin = line.find_first_not_of(" -");
    for (const char* wanted : {"Intel(R) MKL-DNN", "Intel(R) oneAPI", "Intel(R) Math", "OpenBLAS", "CPU capability"}) {
      if (begin != std::string::npos && line.compare(begin, std::string(wanted).size(), wanted) == 0) {
        lines.push_back(line.substr(begin));
      }
    }
    const auto blas = line.find("BLAS_INFO=");
    if (blas != std::string::npos) lines.push_back(line.substr(blas, line.find(',', blas) - blas));
  }
  return lines;
}

}  // namespace phalanx::doctor
