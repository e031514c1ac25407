// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/torch_pickle.h"

#include <algorithm>
#include <utility>

#include "framework/base/checked_product.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/printable.h"
#include "framework/base/storage/torch_storages.h"
#include "framework/base/storage/unpickler.h"
#include "framework/base/storage/unsupported_dtype.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

using Node = PickleNode;

const Node* value_of(const Node& dict, std::string_view key) {
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    if (dict.items[i]->kind == Node::kText && dict.items[i]->text == key) return dict.items[i + 1];
  }
  return nullptr;
}

bool has_tensors(const Node& node) {
  if (node.kind != Node::kDict) return false;
  for (std::size_t i = 1; i < node.items.size(); i += 2) {
    if (node.items[i]->kind == Node::kTensor) return true;
  }
  return false;
}

// Describes a value that is not a tensor.
std::string described(const Node& node) {
  switch (node.kind) {
    case Node::kTensor:
      return "one tensor";
    case Node::kDict:
      return "a dictionary";
    case Node::kList:
      return "a list";
    case Node::kText:
      return "a string";
    case Node::kInt:
    case Node::kFloat:
      return "a number";
    case Node::kOther:
    case Node::kGlobal:
      return printable(node.text) + ", which was not executed";
    default:
      return "something else";
  }
}

// Returns the state dict: the dictionary in `root` that has one of the names that trainers use, or the only one in it
// that has tensors, or `root` itself.
const Node& find_state_dict(const std::string& file, const Node& root) {
  if (root.kind != Node::kDict) {
    throw DataError(file + ": holds " + described(root) + ", not a dictionary of tensors; save model.state_dict()");
  }
  for (const char* key : {"state_dict", "model_state_dict", "model_state", "model", "params_ema", "params", "net",
                          "network", "weights", "module"}) {
    const Node* const inner = value_of(root, key);
    if (inner != nullptr && inner->kind == Node::kDict) return *inner;
  }
  if (has_tensors(root)) return root;
  std::vector<std::string> keys;
  const Node* only = &root;
  for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
    if (root.items[i]->kind != Node::kText || !has_tensors(*root.items[i + 1])) continue;
    keys.push_back(printable(root.items[i]->text));
    only = root.items[i + 1];
  }
  if (keys.size() > 1) {
    throw DataError(file + ": has several dictionaries of tensors (" + join(keys, ", ") +
                    "); save only the one to load, as {\"state_dict\": ...}");
  }
  return *only;
}

at::ScalarType dtype_of(const std::string& storage) {
  for (const auto& type : kTorchStorages) {
    if (storage == std::string("torch.") + type.name) return type.dtype;
  }
  return at::ScalarType::Undefined;
}

// The entries of a state dict may all be the same tensor, and each entry gets a copy of its description.
constexpr std::uint64_t kMaxDescriptions = 64;        // times the bytes of the pickle
constexpr std::uint64_t kFreeDescriptions = 1 << 20;  // bytes

std::uint64_t description_bytes(const std::string& name, const PickledView& tensor) {
  return name.size() + tensor.storage.size() + (tensor.shape.size() + tensor.strides.size()) * sizeof(std::int64_t);
}

// Checks that a view reads only elements of its storage and has no more elements than the storage.
void check_view(const std::string& file, const PickledTensor& tensor) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(file + ": data.pkl: tensor " + tensor.name + " " + why);
  };
  const auto numel = checked_product(tensor.shape);
  if (!numel) refuse("has more elements than can be counted");
  const std::string storage = "a storage of " + std::to_string(tensor.storage_numel) + " elements";
  if (*numel > tensor.storage_numel) {
    refuse("has " + std::to_string(*numel) + " elements, which repeat those of " + storage +
           "; save a contiguous copy of it");
  }
  bool fits = tensor.shape.size() == tensor.strides.size() && tensor.offset >= 0;
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; fits && i < tensor.shape.size(); ++i) {
    std::int64_t way = 0;
    fits = !__builtin_mul_overflow(std::max<std::int64_t>(tensor.shape[i] - 1, 0), tensor.strides[i], &way) &&
           !__builtin_add_overflow(last, way, &last);
  }
  if (!fits || (*numel > 0 && last >= tensor.storage_numel)) refuse("lies outside of its " + storage.substr(2));
}

void append_text(std::string& to, const std::string& text) {
  to += 'X';
  const auto bytes = static_cast<std::uint32_t>(text.size());
  to.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  to += text;
}

void append_number(std::string& to, std::int64_t value) {
  to += "\x8a\x08";  // opcode for an integer of 8 bytes
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_tuple(std::string& to, const std::vector<std::int64_t>& values) {
  to += '(';
  for (const auto value : values) append_number(to, value);
  to += 't';
}

const char* storage_name(const PickledTensor& tensor) {
  for (const auto& type : kTorchStorages) {
    if (type.dtype == tensor.dtype) return type.name;
  }
  throw DataError("tensor " + tensor.name + " has dtype " + c10::toString(tensor.dtype) +
                  ", which a .pt file cannot hold");
}

}  // namespace

std::vector<PickledTensor> unpickle_state_dict(const std::string& file, std::string_view pickle) {
  const Unpickled unpickled = unpickle(file + ": data.pkl", pickle);
  const Node& dict = find_state_dict(file, *unpickled.root);
  std::vector<PickledTensor> tensors;
  std::uint64_t described_bytes = 0;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Node &key = *dict.items[i], &value = *dict.items[i + 1];
    if (key.kind != Node::kText) throw DataError(file + ": the state dict has a key that is not a string");
    if (key.text.ends_with("_extra_state")) {
      log_info() << file << ": " << key.text << " is left out";
    } else if (value.kind != Node::kTensor) {
      throw DataError(file + ": " + printable(key.text) + " is not a tensor, but " + described(value) +
                      "; save model.state_dict() alone, or as {\"state_dict\": ...}");
    } else if (dtype_of(value.tensor->type) == at::ScalarType::Undefined) {
      throw DataError(file + ": " + unsupported_dtype(key.text, "is of " + printable(value.tensor->type)));
    } else {
      const PickledView& view = *value.tensor;
      described_bytes += description_bytes(key.text, view);
      if (described_bytes > kFreeDescriptions + kMaxDescriptions * pickle.size()) {
        throw DataError(file + ": its entries repeat tensors more often than those of any model do");
      }
      tensors.push_back({.name = key.text,
                         .dtype = dtype_of(view.type),
                         .shape = view.shape,
                         .strides = view.strides,
                         .offset = view.offset,
                         .storage = view.storage,
                         .storage_numel = view.storage_numel});
      check_view(file, tensors.back());
    }
  }
  return tensors;
}

std::string pickle_state_dict(const std::vector<PickledTensor>& tensors) {
  std::string text =
      "\x80\x02"
      "ccollections\nOrderedDict\n)R(";
  std::size_t index = 0;
  for (const auto& tensor : tensors) {
    std::vector<std::int64_t> strides(tensor.shape.size());
    std::int64_t numel = 1, step = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      strides[i] = step;
      step *= std::max<std::int64_t>(tensor.shape[i], 1);
      numel *= tensor.shape[i];
    }
    append_text(text, tensor.name);
    text += "ctorch._utils\n_rebuild_tensor_v2\n((";
    append_text(text, "storage");
    text += std::string("ctorch\n") + storage_name(tensor) + "\n";
    append_text(text, std::to_string(index++));
    append_text(text, "cpu");
    append_number(text, numel);
    text += "tQ";
    append_number(text, 0);
    append_tuple(text, tensor.shape);
    append_tuple(text, strides);
    text +=
        "\x89"
        "ccollections\nOrderedDict\n)RtR";
  }
  return text + "u.";
}

}  // namespace phalanx
