// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace phalanx {

/// A key of the config.json that Hugging Face stores with a model's weights, with the values that are compatible with a
/// model here. Members of `rope_parameters` and `rope_scaling` are called rope_scaling.KEY.
struct PublishedSetting {
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string>;

  std::string key;
  std::vector<Value> values;  // all compatible values; messages show the first one
  // The value if the file lacks the key; nullopt: any value, because tensor shapes determine it.
  std::optional<Value> absent{};
  std::string field{};        // the key of section model that sets it, or empty
  bool or_more = false;       // numbers above the first value are compatible, too
  bool of_positions = false;  // a number of positions, the first of which the model may take (init.truncate)
};

/// A model that can read Hugging Face weights, whose config.json may show that they were trained for a different
/// computation.
class Published {
 public:
  virtual ~Published() = default;
  virtual const std::vector<PublishedSetting>& published_settings() const = 0;

  /// Returns regular expressions that match parameter names of other versions of the library, each with the replacement
  /// that gives the name in this model.
  virtual std::vector<std::pair<std::string, std::string>> names_of_other_versions() const { return {}; }
};

}  // namespace phalanx
