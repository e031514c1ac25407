// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::kernels {

/// Affects the code that MKL, which LibTorch contains on x86, uses. MKL asks once in a process whether the processor is
/// Intel's, by a function (mkl_serv_intel_cpu_true) that a program can define itself. On other processors it uses
/// slower code: on AMD's, AVX2 although the processor has AVX-512, and scalar code for exp and tanh. A program that
/// links this library answers the question: with MKL's own answer until run_mkl_as_on_intel() is called, and with yes
/// after that. MKL then uses the code that suits the instruction sets of the processor.
///
/// MKL asks before or in its first product or vector function, so this must be called before that. Returns false if MKL
/// has already asked and not been answered this way; MKL then continues as it began. Thread-safe.
bool run_mkl_as_on_intel();

/// Returns true if MKL has asked in this process.
bool mkl_has_asked();

}  // namespace phalanx::kernels
