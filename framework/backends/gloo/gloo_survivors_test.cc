// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/backend_under_test.h"

const char* const phalanx::testing::kBackend = "gloo_processes";
