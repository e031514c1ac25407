#include "framework/testing/backend_under_test.h"

const char* const phalanx::testing::kBackend = "on_device";
