// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx::doctor {

/// A library that this program uses. If `linked` and `loaded` differ, the program was built for another version.
struct Library {
  std::string name;
  std::string linked;  // version of the headers that it was compiled with; "absent": it was not installed
  std::string loaded;  // version that the library reports; empty: it reports none
  std::string path;    // path of the loaded file, or what to install
};

/// Returns LibTorch, Open MPI, Gloo, SentencePiece and glibc, even if Phalanx was built without some of them, and the
/// library of an MPI with the standard ABI of MPI 5.0, such as MPICH, if it is found. Does not initialize any of them.
std::vector<Library> libraries();

/// Returns "yes" or "no" for MPI's support of memory of CUDA devices, or why it is unknown. MPI need not run.
std::string cuda_aware_mpi();

/// Returns the number of devices that this LibTorch can use, or -1 if it was built without CUDA or there is no driver.
int cuda_devices();

/// Returns the lines of LibTorch's description of its build that name the computing libraries and instructions
/// ("BLAS_INFO=mkl", "CPU capability usage: AVX512", ...).
std::vector<std::string> torch_build();

}  // namespace phalanx::doctor
