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
    kStorage,  // `tensor` has its key, dtype and size
    kTensor,
    kOther,  // anything else, which Python would make and this does not
  };

  Kind kind = kNone;
  std::int64_t integer = 0;
  std::string text{};                // of kText. Of kGlobal "module.name"; of kOther, what would make it
  std::vector<PickleNode*> items{};  // of kList; of kDict keys and values in turns; of kOther the state it was given
  PickledTensor tensor{};            // of kStorage and kTensor
};

/// A pickle's values; `nodes` owns them, `root` is that of the whole pickle.
struct Unpickled {
  std::deque<PickleNode> nodes;
  const PickleNode* root = nullptr;
};

/// Reads a pickle without running any of it. A pickle is a program for a stack machine, which may call anything that
/// Python can import. This machine knows the values of state dicts: dictionaries, lists, numbers, texts, tensors and
/// their storages. An object of another class, or the result of another function, becomes a node that has no more than
/// the name of that class or function and the state that it is given (BUILD). Time and memory are proportional to the
/// bytes of the pickle. Messages begin with `file`. Throws DataError with the offset for a damaged pickle, and for
/// opcodes that torch.save() does not write.
Unpickled unpickle(const std::string& file, std::string_view pickle);

}  // namespace phalanx
