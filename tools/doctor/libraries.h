// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx::doctor {

/// A library that this program uses. Where `linked` and `loaded` differ, the program was built for another one.
struct Library {
  std::string name;
  std::string linked;  // the version whose headers it was compiled with; "absent": it was not installed
  std::string loaded;  // what the library says of itself; empty: it says nothing
  std::string path;    // the file that was loaded, or what to install
};

/// Returns LibTorch, Open MPI, Gloo, SentencePiece and glibc, also where Phalanx was built without one of them. Starts
/// nothing.
std::vector<Library> libraries();

/// "yes", "no", or why nobody knows: whether MPI takes memory of CUDA devices. MPI need not run.
std::string cuda_aware_mpi();

/// Devices that this LibTorch can use; -1: it was built without CUDA, or there is no driver.
int cuda_devices();

/// Lines of LibTorch's own description of how it was built: those that say what computes ("BLAS_INFO=mkl", "CPU
/// capability usage: AVX512", ...).
std::vector<std::string> torch_build();

}  // namespace phalanx::doctor
