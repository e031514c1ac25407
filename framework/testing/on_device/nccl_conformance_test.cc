// SPDX-License-Identifier: Apache-2.0
// The conformance suite on groups of NCCL, which is the fake one.
#include "framework/testing/backend_under_test.h"

const char* const phalanx::testing::kBackend = "on_cuda";
