// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace phalanx {

/// The least length of a secret. A shorter one could be guessed by anybody who has recorded a hash that was made with
/// it.
inline constexpr std::size_t kMinSecretBytes = 16;

/// Returns 32 random bytes from the operating system, as hexadecimal digits.
std::string random_text();

/// Returns the HMAC-SHA-256 (RFC 2104) of the parts, as 64 hexadecimal digits. Different lists of parts have different
/// hashes, even if the parts are the same when joined.
std::string keyed_hash(const std::string& secret, std::initializer_list<std::string_view> parts);

/// Returns the SHA-256 of `bytes`, as 64 hexadecimal digits: the text that sha256sum prints.
std::string sha256(std::string_view bytes);

/// Compares two hashes in a time that does not depend on where they differ.
bool equal_hashes(std::string_view a, std::string_view b);

}  // namespace phalanx
