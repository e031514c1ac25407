// SPDX-License-Identifier: Apache-2.0
// This file has no include guard, because hwy/foreach_target.h includes its users repeatedly.
//
// The instruction sets for which vector code is compiled differ in the width of their vectors. Others are disabled to
// keep compile time down.
//
// The numbers are HWY_AVX3_ZEN4 and HWY_AVX3_SPR, which Highway 1.0 does not have.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | (1LL << 6) | (1LL << 4))
