// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// A tensor of a state dict, as its pickle describes it: a view of a storage.
struct PickledTensor {
  std::string name;
  at::ScalarType dtype = at::kFloat;  // Undefined for one that is not supported
  std::string unsupported{};          // its name then
  std::vector<std::int64_t> shape, strides;
  std::int64_t offset = 0;  // elements from the storage's first one
  std::string storage;      // its key
  std::int64_t storage_numel = 0;
};

/// Returns the tensors of the state dict in a pickle that torch.save() wrote, in its order, without running any of it
/// (unpickler.h). The state dict is the dictionary in the pickle; or, among other things that a trainer saves, the one
/// under "state_dict", "model_state_dict", "model_state", "model", "params_ema", "params", "net", "network", "weights"
/// or "module", or else the only dictionary that has tensors. What lies next to it may be of any class and is left out,
/// as are entries called _extra_state, which are logged. `file` is for messages. Throws DataError for a damaged pickle,
/// and for entries of the state dict that are no tensors or have an unsupported dtype, by their names.
std::vector<PickledTensor> unpickle_state_dict(const std::string& file, std::string_view pickle);

/// The pickle of an OrderedDict of tensors, as protocol 2: each contiguous, and its storage called by its place: "0".
/// `shape` and `dtype` of each count.
std::string pickle_state_dict(const std::vector<PickledTensor>& tensors);

}  // namespace phalanx
