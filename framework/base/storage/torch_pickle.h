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
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> shape, strides;
  std::int64_t offset = 0;  // elements from the storage's first one
  std::string storage;      // its key
  std::int64_t storage_numel = 0;
};

/// The tensors of the state dict in a pickle that torch.save() wrote, in its order. A pickle is a program, which may
/// call anything that Python can import; this one interprets no more than what state dicts are made of
/// (collections.OrderedDict, tensors, parameters, storages, numbers, texts and lists), and runs nothing. A dictionary
/// {"state_dict": ...} (or "model", "model_state_dict") stands for the one in it. Entries that are called _extra_state
/// are left out and logged. `file` is for messages. Throws DataError with the offset for a pickle that wants anything
/// else, by its name, and for one that is damaged.
std::vector<PickledTensor> unpickle_state_dict(const std::string& file, std::string_view pickle);

/// The pickle of an OrderedDict of tensors, as protocol 2: each contiguous, and its storage called by its place: "0".
/// `shape` and `dtype` of each count.
std::string pickle_state_dict(const std::vector<PickledTensor>& tensors);

}  // namespace phalanx
