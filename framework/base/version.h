#pragma once

namespace phalanx {

/// Of Phalanx: major.minor.patch.
inline constexpr const char* kVersion = "0.1.0";

}  // namespace phalanx
