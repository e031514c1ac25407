// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

/// Calls `context`.connectFullMesh(), which takes a reference to the store in Gloo's versions up to 2024 and a pointer
/// in later versions.
template <class Context, class Store, class Device>
void connect_full_mesh(Context& context, const std::shared_ptr<Store>& store, Device& device) {
  if constexpr (requires { context.connectFullMesh(store, device); }) {
    context.connectFullMesh(store, device);
  } else {
    context.connectFullMesh(*store, device);
  }
}
