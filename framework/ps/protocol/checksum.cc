// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/protocol/checksum.h"

#include "framework/base/storage/crc32c.h"
#include "framework/base/text.h"

namespace phalanx::ps {

std::uint32_t checksum_of(const at::Tensor& values) {
  return values.defined() ? crc32c(values.const_data_ptr(), values.nbytes()) : 0;
}

std::string damage_of(const Header& header, const at::Tensor& values) {
  if (!header.summed()) return "";
  const auto arrived = checksum_of(values);
  if (arrived == header.sum()) return "";
  return std::to_string(values.defined() ? values.nbytes() : 0) +
         " bytes were damaged on the way: they were sent with " +
         format_text("CRC-32C %08x, but what arrived has %08x", header.sum(), arrived) + kWhatDamages;
}

}  // namespace phalanx::ps
