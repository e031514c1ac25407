// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/storage/torch_pickle.h"

namespace phalanx {

/// A value that a pickle describes.
struct PickleNode {
  enum Kind {
    kMark,
    kNone,
    kInt,
    kFloat,
    kText,
    kList,
    kDict,
    kGlobal,   // a class or function, by its name; nothing is imported
    kStorage,  // `tensor` has the storage's key, dtype and size
    kTensor,
    kOther,  // anything else; Python would make an object of it, and this reader does not
  };

  Kind kind = kNone;
  std::int64_t integer = 0;
  std::string text{};                // kText: the text; kGlobal: "module.name"; kOther: name of the class or function
  std::vector<PickleNode*> items{};  // kList: items; kDict: keys and values, alternating; kOther: its state
  PickledTensor tensor{};            // kStorage and kTensor
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

}  // namespace phalanx
