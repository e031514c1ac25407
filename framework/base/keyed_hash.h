// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace phalanx {

/// A shorter secret could be guessed by whoever has recorded a hash that was made with it.
inline constexpr std::size_t kLeastSecret = 16;

/// 32 random bytes of the operating system, in hexadecimal digits.
std::string random_text();

/// HMAC-SHA-256 (RFC 2104) of the parts, in 64 hexadecimal digits. Different lists of parts are different texts, even
/// if they are the same when joined.
std::string keyed_hash(const std::string& secret, std::initializer_list<std::string_view> parts);

/// Compares two hashes in a time that does not depend on where they differ.
bool equal_hashes(std::string_view a, std::string_view b);

}  // namespace phalanx
