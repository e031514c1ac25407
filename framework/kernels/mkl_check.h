// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::kernels {

/// MKL, which LibTorch contains on x86, asks once in a process whether the processor is Intel's, by a function
/// (mkl_serv_intel_cpu_true) that a program can define itself. On other processors it uses slower code: on AMD's, AVX2
/// where the processor has AVX-512, and scalar code for exp and tanh. A program that links this library answers the
/// question: with MKL's own answer until run_mkl_as_on_intel() is called, with yes from then on. MKL then uses the code
/// that suits the instruction sets that the processor has.
///
/// Does nothing for later questions than MKL's first, which is before or in the first product or vector function.
/// Returns false if MKL has asked already, and goes on as it began. Thread-safe.
bool run_mkl_as_on_intel();

/// Returns true if MKL has asked in this process.
bool mkl_has_asked();

}  // namespace phalanx::kernels
