// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/kernels.h"

#include <c10/util/Exception.h>
#include <torch/library.h>

#include <mutex>
#include <optional>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/kernels/mkl_check.h"
#include "framework/kernels/registrations.h"

namespace phalanx::kernels {
namespace {

constexpr const char* kDenseFloats = "float32, dense";
constexpr const char* kContiguousFloats = "float32, contiguous";

// Suppresses LibTorch's warnings about kernels that replace its own.
class Silence final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

struct InUse {
  std::string choice;
  Plan plan;
  std::optional<Registration> registration{};
};

std::mutex in_use_mutex;
InUse* in_use = nullptr;  // never destroyed: other threads may compute until the process ends

}  // namespace

std::string Plan::summary() const {
  std::vector<std::string> parts;
  if (vector_code) parts.push_back("vectors");
  if (mkl_as_on_intel) parts.push_back("mkl as on intel");
  return parts.empty() ? kLibTorch : join(parts, ", ");
}

std::vector<Kernel> Plan::table() const {
  const std::string not_asked = "kernels: libtorch";
  const auto ours = [&](const char* operators, const char* tensors, const char* code, const char* reason) {
    return vector_code ? Kernel{operators, tensors, code, reason} : Kernel{operators, tensors, "LibTorch", not_asked};
  };
  const char* const no_vectors = "LibTorch has no vector code for this layout";
  const char* const slow_tanh = "LibTorch uses MKL's or Sleef's code, which is slower";
  std::vector<Kernel> rows{
      ours(replaces_tanh() ? "tanh, sigmoid, silu" : "sigmoid, silu", kDenseFloats, "Highway", slow_tanh),
      ours("gelu, silu: gradients too", kDenseFloats, "Highway", slow_tanh),
      ours("convolutions with stride 1, gradients too", "float32, contiguous, few channels", "Highway",
           "LibTorch's code is made for many channels"),
      ours("max_pool2d, avg_pool2d, adaptive_avg_pool2d", kContiguousFloats, "Highway", no_vectors),
      ours("batch_norm in training", kContiguousFloats, "Highway", "LibTorch adds up one number at a time")};
  if (mkl_as_on_intel) {
    rows.push_back({"mm, bmm, addmm, attention, exp, log", "float32, float64", "MKL as on Intel",
                    "on AMD's processors MKL does not use all instructions that they have"});
  } else {
    rows.push_back(
        {"mm, bmm, addmm, attention, exp, log", "float32, float64", "LibTorch",
         vector_code ? "MKL uses all instructions of the processor, or LibTorch has no MKL here" : not_asked});
  }
  return rows;
}

Plan make_plan(const std::string& choice, const Processor& processor) {
  if (choice == kLibTorch) return {};
  if (choice != kAuto) throw ConfigError("kernels: must be auto or libtorch, not \"" + choice + "\"");
  return {.vector_code = true, .mkl_as_on_intel = processor.is_amd()};
}

struct Registration::Libraries {
  torch::Library cpu{torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__};
};

Registration::Registration() : libraries_(std::make_unique<Libraries>()) {
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard guard(&silence);
  add_activations(libraries_->cpu);
  add_convolution(libraries_->cpu);
  add_normalization(libraries_->cpu);
  add_pooling(libraries_->cpu);
}

Registration::~Registration() = default;

Plan use_kernels(const std::string& choice) {
  const std::lock_guard lock(in_use_mutex);
  if (in_use == nullptr) {
    in_use = new InUse{choice, make_plan(choice, this_processor())};
    if (in_use->plan.vector_code) in_use->registration.emplace();
    if (in_use->plan.mkl_as_on_intel && !run_mkl_as_on_intel()) {
      log_warning()
          << "kernels: MKL was used before the config was read, so its choice of instructions can no longer be changed";
      in_use->plan.mkl_as_on_intel = false;
    }
  } else if (in_use->choice != choice) {
    throw Error("kernels: this process uses " + in_use->choice + " already, and cannot change to " + choice);
  }
  return in_use->plan;
}

std::string kernels_in_use() {
  const std::lock_guard lock(in_use_mutex);
  return in_use == nullptr ? kLibTorch : in_use->plan.summary();
}

}  // namespace phalanx::kernels
