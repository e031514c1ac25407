// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// A tensor of a state dict as its pickle describes it: a view of a storage.
struct PickledTensor {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> shape, strides;
  std::int64_t offset = 0;  // in elements, from the first one of the storage
  std::string storage;      // key of the storage
  std::int64_t storage_numel = 0;
};

/// Returns the tensors of the state dict in a pickle that torch.save() wrote, in its order, without running any of it
/// (unpickler.h). The state dict is the dictionary in the pickle. If a trainer saved other things too, it is the
/// dictionary under "state_dict", "model_state_dict", "model_state", "model", "params_ema", "params", "net", "network",
/// "weights" or "module", or else the only dictionary that has tensors. Anything next to it may be of any class and is
/// skipped; so are entries called _extra_state, which are logged. `file` is for messages. Throws DataError for a
/// damaged pickle, and for entries of the state dict that are not tensors or have an unsupported dtype, with their
/// names.
std::vector<PickledTensor> unpickle_state_dict(const std::string& file, std::string_view pickle);

/// Returns the pickle (protocol 2) of an OrderedDict of tensors. Each tensor is contiguous, and the key of its storage
/// is its position: "0". Only `name`, `shape` and `dtype` of each tensor are used.
std::string pickle_state_dict(const std::vector<PickledTensor>& tensors);

}  // namespace phalanx
