// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/kernels/processor.h"

namespace phalanx::kernels {

/// The values of `kernels` in a config.
inline constexpr const char* kAuto = "auto";          // the kernels that are fastest on this processor
inline constexpr const char* kLibTorch = "libtorch";  // LibTorch's, as LibTorch chooses them

/// Which code computes some operators, and why.
struct Kernel {
  std::string operators;
  std::string tensors;  // dtype and layout
  std::string code;
  std::string reason;
};

/// The kernels that a process uses on the CPU. They follow from the config and the processor alone, never from
/// measurements at run time: processes on equal processors compute the same bits, today and after a resume.
struct Plan {
  bool vector_code = false;      // ours: the vector_*.h of this folder
  bool mkl_as_on_intel = false;  // mkl_check.h

  /// "libtorch", or what differs from it, such as "vectors, mkl as on intel": for logs and checkpoints.
  std::string summary() const;

  std::vector<Kernel> table() const;
};

/// Returns the kernels that `choice`, kAuto or kLibTorch, stands for on a processor.
Plan make_plan(const std::string& choice, const Processor& processor);

/// While one lives, LibTorch's dispatcher calls the vector code of a plan: in all code of the process, also that of
/// exported programs, TorchScript and plug-ins, and in its gradients. One at a time in a process; made and destroyed
/// while no other thread calls operators.
class Registration {
 public:
  Registration();
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  struct Libraries;
  std::unique_ptr<Libraries> libraries_;
};

/// Makes this process use the kernels that `choice` stands for, until it ends. For programs, once the config is read
/// and before the first product. A second call has no effect, except that it throws Error if the choice is another one.
/// Returns the plan. Warns in the log if MKL was used before.
Plan use_kernels(const std::string& choice);

/// The summary of what use_kernels() has made this process use; "libtorch" before it is called.
std::string kernels_in_use();

}  // namespace phalanx::kernels
