// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace phalanx {

/// While one exists, matrix products and convolutions on `device` compute with `dtype` in this thread, and operators
/// that need more range compute in float32, as with torch.autocast (Micikevicius et al. 2018, arXiv:1710.03740, section
/// 3). With at::kFloat, all operators compute in the dtype of their inputs, even inside another Autocast. Parameters
/// are cast at each use and the casts are not cached, so gradients of a parameter that is used twice add up in float32.
class Autocast {
 public:
  Autocast(c10::DeviceType device, c10::ScalarType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  /// Returns the dtype of the innermost Autocast in this thread, or at::kFloat outside of any.
  static c10::ScalarType current(c10::DeviceType device);

 private:
  struct Setting {
    bool enabled;
    c10::ScalarType dtype;
    bool cache;
  };

  c10::DeviceType device_;
  Setting before_;
};

}  // namespace phalanx
