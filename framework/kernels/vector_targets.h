// Not guarded against repeated inclusion, as hwy/foreach_target.h includes its users repeatedly.
//
// The instruction sets that vector code is compiled for: those that differ in the width of their vectors. Others are
// left out to keep compile time down.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
