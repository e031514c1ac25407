// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/storage/unpickler.h"

namespace phalanx {

/// A value of a dump of PyTorch's flight recorder, which is checked when it is read: each function throws DataError,
/// with the file and the place in it, for a value of another kind. Values of a pickle may occur in it many times, so
/// reads of them are counted, and too many are refused.
class DumpValue {
 public:
  struct Document {
    std::string source;
    std::uint64_t reads_left;
    Unpickled unpickled;
  };

  /// Returns the document of a pickle. `source` is its file, for messages.
  static Document parse(const std::string& source, const std::string& pickle);

  /// The whole dump. `document` must outlive the value.
  explicit DumpValue(Document& document) : DumpValue(document, "the dump", document.unpickled.root) {}

  /// Throws the DataError that this value `why`, such as " is not finite".
  [[noreturn]] void refuse(const std::string& why) const;

  /// Returns the value of a key of a dictionary. Absent if the key is, or if its value is None; at() throws then.
  std::optional<DumpValue> find(std::string_view key) const;
  DumpValue at(std::string_view key) const;

  /// Returns the values of a dictionary, whatever their keys.
  std::vector<DumpValue> values() const;

  /// Return the number of items of a list, and one of them.
  std::size_t size() const;
  DumpValue operator[](std::size_t index) const;

  std::string text() const;
  std::int64_t integer() const;
  double seconds(double unit) const { return static_cast<double>(integer()) * unit; }
  double number() const;  // finite

 private:
  DumpValue(Document& document, std::string path, const PickleNode* node)
      : document_(&document), path_(std::move(path)), node_(node) {}

  const PickleNode& of_kind(PickleNode::Kind kind, const char* name) const;
  void read(std::uint64_t amount) const;

  Document* document_;
  std::string path_;
  const PickleNode* node_;
};

/// Returns the beginning of a name in a dump, without characters that a terminal would obey.
std::string shortened(std::string name);

/// The length of such a beginning.
inline constexpr std::size_t kShownBytes = 200;

}  // namespace phalanx
