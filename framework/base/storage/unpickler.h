// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// A tensor, or its storage, as a pickle of PyTorch describes it.
struct PickledView {
  std::string type{};  // of the storage, "torch.FloatStorage", or the dtype of an untyped one, "torch.uint16"
  std::vector<std::int64_t> shape{}, strides{};
  std::int64_t offset = 0;  // in elements, from the first one of the storage
  std::string storage{};    // key of the storage
  std::int64_t storage_numel = 0;
};

/// A value that a pickle describes.
struct PickleNode {
  enum Kind {
    kMark,
    kNone,
    kInt,  // also True and False, as 1 and 0
    kFloat,
    kText,
    kList,
    kDict,
    kGlobal,   // a class or function, by its name; nothing is imported
    kStorage,  // `tensor` has the storage's key, type and size
    kTensor,
    kOther,  // anything else; Python would make an object of it, and this reader does not
  };

  Kind kind = kNone;
  std::int64_t integer = 0;
  double number = 0;                 // kFloat
  std::string text{};                // kText: the text; kGlobal: "module.name"; kOther: name of the class or function
  std::vector<PickleNode*> items{};  // kList: items; kDict: keys and values, alternating; kOther: its state
  std::unique_ptr<PickledView> tensor{};  // of kStorage and kTensor only
};

/// The values of a pickle. `nodes` owns them; `root` is the value of the whole pickle.
struct Unpickled {
  std::deque<PickleNode> nodes;
  const PickleNode* root = nullptr;
};

/// Reads a pickle without running any of it. A pickle is a program for a stack machine, which may call anything that
/// Python can import. This machine knows the values of state dicts: dictionaries, lists, numbers, texts, tensors and
/// their storages. An object of another class, or the result of another function, becomes a node that has only the name
/// of that class or function and the state that the opcode BUILD gives it. Time and memory are proportional to the
/// bytes of the pickle. Messages begin with `file`. Throws a DataError with the offset for a damaged pickle, and for
/// opcodes that torch.save() does not write.
Unpickled unpickle(const std::string& file, std::string_view pickle);

/// Does the same for a pickle that has only plain values: None, booleans, numbers, texts, lists, tuples (as lists) and
/// dictionaries. Throws a DataError with the offset for any opcode that imports, calls or makes something else.
Unpickled unpickle_plain(const std::string& file, std::string_view pickle);

}  // namespace phalanx
