// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/trace/nvtx.h"

#include <ATen/record_function.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <memory>

#include "framework/base/error.h"

namespace phalanx {
namespace {

std::unique_ptr<at::ObserverContext> push(const at::RecordFunction& function) {
  torch::profiler::impl::cudaStubs()->rangePush(function.name());
  return nullptr;
}

void pop(const at::RecordFunction&, at::ObserverContext*) { torch::profiler::impl::cudaStubs()->rangePop(); }

}  // namespace

NvtxRanges::NvtxRanges() {
  if (!torch::profiler::impl::cudaStubs()->enabled()) {
    throw ConfigError("watch.nvtx: names what runs on an NVIDIA device, but this run has none; leave it out");
  }
  callback_ = at::addGlobalCallback(at::RecordFunctionCallback(push, pop).scopes(
      {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
}

NvtxRanges::~NvtxRanges() { at::removeCallback(callback_); }

}  // namespace phalanx
