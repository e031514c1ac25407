// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/version.h>

#include <string_view>

namespace phalanx {

/// The keys under which Phalanx stores values in c10::ThreadLocalDebugInfo, which LibTorch passes on to the threads
/// that run a backward. Since 2.12, LibTorch permits any number of keys; before, it had two that it did not use itself.
/// The keys are not constexpr, because with -fsanitize=undefined GCC 12 rejects the comparison with null that makes
/// them.
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 12
inline constexpr c10::DebugInfoKind kOperatorTraceInfo = c10::DebugInfoKind::TEST_INFO;
inline constexpr c10::DebugInfoKind kDeferredGradientsInfo = c10::DebugInfoKind::TEST_INFO_2;
#else
inline constexpr std::string_view kOperatorTraceInfoName = "phalanx::OperatorTrace";
inline const c10::DebugInfoKind kOperatorTraceInfo(&kOperatorTraceInfoName);
inline constexpr std::string_view kDeferredGradientsInfoName = "phalanx::DeferGradients";
inline const c10::DebugInfoKind kDeferredGradientsInfo(&kDeferredGradientsInfoName);
#endif

}  // namespace phalanx
