// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Marks the values that ranks write to a store that others can reach, so that values that others have written are not
/// taken for a rank's: the keyed hash of key and value precedes the value. This does not prevent reading, nor replaying
/// a value that was once written under the same key.
class Seal {
 public:
  using Bytes = std::vector<std::uint8_t>;

  /// The secret has at least kMinSecretBytes bytes.
  explicit Seal(std::string secret) : secret_(std::move(secret)) {}

  Bytes sealed(const std::string& key, const std::string& value) const;

  /// Returns the value. Throws a CommError::kSystem that names the key if it is not sealed with this secret.
  std::string opened(const std::string& key, const Bytes& sealed) const;

 private:
  std::string secret_;
};

}  // namespace phalanx
