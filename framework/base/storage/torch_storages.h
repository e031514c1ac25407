// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <array>

namespace phalanx {

/// Torch's names, in its module "torch", for the storages of the dtypes that weights may have.
struct TorchStorage {
  const char* name;
  at::ScalarType dtype;
};
inline constexpr std::array<TorchStorage, 10> kTorchStorages{{{"FloatStorage", at::kFloat},
                                                              {"DoubleStorage", at::kDouble},
                                                              {"HalfStorage", at::kHalf},
                                                              {"BFloat16Storage", at::kBFloat16},
                                                              {"LongStorage", at::kLong},
                                                              {"IntStorage", at::kInt},
                                                              {"ShortStorage", at::kShort},
                                                              {"CharStorage", at::kChar},
                                                              {"ByteStorage", at::kByte},
                                                              {"BoolStorage", at::kBool}}};

}  // namespace phalanx
