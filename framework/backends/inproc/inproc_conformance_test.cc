#include "framework/testing/communicator_conformance.h"

const char* const phalanx::testing::kBackend = "inproc";
