// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/kernels/processor.h"

namespace phalanx::kernels {

/// The values of `kernels` in a config.
inline constexpr const char* kAuto = "auto";          // the kernels that are fastest on this processor
inline constexpr const char* kLibTorch = "libtorch";  // the kernels that LibTorch chooses

/// The code that computes some operators, and the reason for its choice.
struct Kernel {
  std::string operators;
  std::string tensors;  // dtype and layout
  std::string code;
  std::string reason;
};

/// The kernels that a process uses on the CPU. They follow only from the config and the processor, never from
/// measurements at run time: processes on equal processors compute the same bits, today and after a resume.
struct Plan {
  bool vector_code = false;      // our code: the vector_*.h of this folder
  bool mkl_as_on_intel = false;  // mkl_check.h

  /// Returns "libtorch", or the differences from it such as "vectors, mkl as on intel". For logs and checkpoints.
  std::string summary() const;

  std::vector<Kernel> table() const;
};

/// Returns the kernels that `choice`, kAuto or kLibTorch, selects on a processor.
Plan make_plan(const std::string& choice, const Processor& processor);

/// While one exists, LibTorch's dispatcher calls our vector code for the whole process, including exported programs,
/// TorchScript and plug-ins, and including gradients. A process may have one at a time. It must be made and destroyed
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

/// Makes this process use the kernels that `choice` selects, until it ends. Programs call it once, before the first
/// matrix product: load_checked() of tools/config does it for all that read a config, and benchmarks do it for the
/// kernels that they measure. A second call has no effect, except that it throws Error if the choice differs. Returns
/// the plan. Logs a warning if MKL was used before.
Plan use_kernels(const std::string& choice);

/// Returns the summary of the kernels that use_kernels() has selected, or "libtorch" before it is called.
std::string kernels_in_use();

}  // namespace phalanx::kernels
