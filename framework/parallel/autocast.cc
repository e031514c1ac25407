// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/autocast.h"

#include <ATen/autocast_mode.h>

namespace phalanx {

// All threads of the process share LibTorch's cache of cast parameters, and any thread clears it. With ranks as
// threads, it would be random which uses share a copy, so the cache is turned off.
Autocast::Autocast(c10::DeviceType device, c10::ScalarType dtype)
    : device_(device),
      before_{at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device),
              at::autocast::is_autocast_cache_enabled()} {
  const bool enabled = dtype != at::kFloat;
  at::autocast::set_autocast_enabled(device, enabled);
  if (enabled) at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::set_autocast_cache_enabled(false);
}

Autocast::~Autocast() {
  at::autocast::set_autocast_cache_enabled(before_.cache);
  at::autocast::set_autocast_dtype(device_, before_.dtype);
  at::autocast::set_autocast_enabled(device_, before_.enabled);
}

c10::ScalarType Autocast::current(c10::DeviceType device) {
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device) : at::kFloat;
}

}  // namespace phalanx
