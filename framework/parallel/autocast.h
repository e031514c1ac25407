// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace phalanx {

/// While it lives, matrix products and convolutions on `device` compute with `dtype` in this thread and what needs more
/// range in float32, as torch.autocast (Micikevicius et al. 2018, arXiv:1710.03740, section 3). With at::kFloat: all
/// as it comes, also inside another one. Parameters are cast where they are used: nothing is kept from use to use, so
/// gradients of a parameter that is used twice add up in float32.
class Autocast {
 public:
  Autocast(c10::DeviceType device, c10::ScalarType dtype);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  /// What the innermost one alive in this thread computes with; at::kFloat without any.
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
