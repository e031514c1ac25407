// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace phalanx {

/// A key of the config.json that Hugging Face keeps beside a model's weights, with the values that suit a model of
/// ours. Members of `rope_parameters` and `rope_scaling` are called rope_scaling.KEY.
struct PublishedSetting {
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string>;

  std::string key;
  std::vector<Value> values;      // all that suit the model; messages show the first
  std::optional<Value> absent{};  // the value of a file without the key; none: any, as shapes of tensors tell it
  std::string field{};            // the key of section model that sets it; empty: there is none
  bool or_more = false;           // numbers above the first value suit the model too
  bool of_positions = false;      // a number of positions, of which the model may take the first ones (init.truncate)
};

/// A model that reads weights of Hugging Face's, whose config.json may say that they were trained for another
/// computation.
class Published {
 public:
  virtual ~Published() = default;
  virtual const std::vector<PublishedSetting>& published_settings() const = 0;

  /// Returns regular expressions that match names of other versions of the library, each with what takes the place of a
  /// match in the model's names.
  virtual std::vector<std::pair<std::string, std::string>> names_of_other_versions() const { return {}; }
};

}  // namespace phalanx
