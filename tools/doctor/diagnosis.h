// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/machine.h"

namespace phalanx::doctor {

/// The findings about one backend on one kind of device.
struct BackendFinding {
  std::string name, device;
  std::map<std::string, std::string> operations{};  // "ok" or the reason for a failure, by operation
  double round_trip_us = 0;                         // for the smallest message between two ranks; 0: not measured
  double message_gb_s = 0, all_reduce_gb_s = 0;     // bus bandwidth, 16 MB, 2 ranks
};

struct LibraryFinding {
  std::string name, linked, loaded, path;
};

/// The code that computes some operators on the CPU with `kernels: auto`.
struct KernelFinding {
  std::string operators, tensors, code, reason;
};

/// The backend that `backend: auto` chooses for some ranks.
struct AutomaticFinding {
  std::string ranks;    // "ranks of one host"
  std::string backend;  // "shm"
  std::string reason;
};

struct AlgorithmFinding {
  std::string name, about;
};

/// All findings of doctor. A finding that could not be determined is empty and has a note.
struct Diagnosis {
  Machine machine;
  std::vector<LibraryFinding> libraries{};
  std::vector<std::string> torch_build{};
  std::string vectors{};   // vector instructions that LibTorch uses: "AVX2"
  double matrix_peak = 0;  // floating-point operations per second of one core; 0: not measured
  std::vector<KernelFinding> kernels{};
  std::string cuda_aware_mpi = "unknown";
  int cuda_devices = -1;                      // CUDA devices that this build can use; -1: it
                                              // was built without CUDA, or there is no driver
  std::string launched;                       // launcher and rank
  std::string nodes;                          // "one" or "several"
  std::string rank_address{};                 // how other hosts reach this one, and why at this address
  std::vector<AutomaticFinding> automatic{};  // what `backend: auto` means
  std::string automatic_here{};               // which of them applies to the ranks that the launcher started
  std::vector<std::string> operations{};      // rows of the table
  std::vector<BackendFinding> backends{};     // columns of the table
  std::map<std::string, std::vector<AlgorithmFinding>> algorithms{};  // by operation
  std::vector<CoreLink> cores{};                                      // nearest first
  double copy_gb_s = 0;
  std::vector<std::string> notes{};  // advice, or problems to fix

  const BackendFinding* find(const std::string& backend) const;  // null if not found
  bool works(const std::string& backend) const;                  // true if every operation was tested successfully
};

/// Inspects this machine, runs `probe` (see probe.cc) to find what works, and measures links. Takes about 15 seconds.
/// Never throws because of a finding.
Diagnosis diagnose(const std::string& probe);

/// Rows of the table of operations: all operations of Communicator, in the order of its header. operations.h tests
/// them.
inline constexpr const char* kOperationNames[] = {
    "broadcast",  "reduce",  "all_reduce", "reduce_scatter", "all_gather", "gather", "scatter", "all_to_all",
    "send, recv", "barrier", "run",        "split",          "allocate",
};

}  // namespace phalanx::doctor
