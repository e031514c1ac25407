// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/storage/stored_zip.h"
#include "tests/fuzz/mutators.h"
#include "tests/fuzz/scratch_file.h"

namespace phalanx::fuzz {
namespace {

constexpr std::size_t kTwoLines = 1000;  // an argument of two lines
constexpr std::size_t kTarBlock = 512;

// Returns the bytes of the argument of a pickle's opcode, or of the length that precedes it.
std::size_t fixed_argument(unsigned char code) {
  switch (code) {
    case 0x80:
    case 'q':
    case 'h':
    case 'K':
      return 1;
    case 'M':
      return 2;
    case 'J':
    case 'r':
    case 'j':
      return 4;
    case 0x95:
    case 'G':
      return 8;
    case 'c':
    case 'i':
      return kTwoLines;
    default:
      return 0;
  }
}

std::size_t length_bytes(unsigned char code) {
  switch (code) {
    case 0x8a:
    case 0x8c:
    case 'U':
    case 'C':
      return 1;
    case 0x8b:
    case 'X':
    case 'T':
    case 'B':
      return 4;
    case 0x8d:
    case 0x8e:
    case 0x96:
      return 8;
    default:
      return 0;
  }
}

// Returns the size of the first opcode with its argument.
std::size_t opcode_size(std::string_view rest) {
  const auto code = static_cast<unsigned char>(rest[0]);
  const std::size_t fixed = fixed_argument(code), length = length_bytes(code);
  if (fixed == kTwoLines) {
    const auto first = rest.find('\n');
    const auto second = first == std::string_view::npos ? first : rest.find('\n', first + 1);
    return std::min(rest.size(), second == std::string_view::npos ? second : second + 1);
  }
  std::uint64_t bytes = 0;
  if (length > 0 && rest.size() > length) std::memcpy(&bytes, rest.data() + 1, length);
  return std::min<std::uint64_t>(rest.size(), 1 + fixed + length + std::min<std::uint64_t>(bytes, rest.size()));
}

std::vector<std::string> opcodes_of(std::string_view pickle) {
  std::vector<std::string> opcodes;
  while (!pickle.empty()) {
    opcodes.emplace_back(pickle.substr(0, opcode_size(pickle)));
    pickle.remove_prefix(opcodes.back().size());
  }
  return opcodes;
}

std::string random_opcode(Random& random) {
  static constexpr std::string_view kCodes = "(0N)]}tlaesuRQbo.\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94\x81\x92";
  const auto byte = static_cast<char>(random() % 16);
  switch (random() % 4) {
    case 0:
      return {'h', byte};
    case 1:
      return {'q', byte};
    case 2:
      return {'K', byte};
    default:
      return {kCodes[random() % kCodes.size()]};
  }
}

std::string changed_argument(const std::string& opcode, const MutateBytes& mutate) {
  const std::size_t length = length_bytes(static_cast<unsigned char>(opcode[0]));
  if (opcode.size() <= 1 + length) return mutate(opcode);
  const std::string argument = mutate(opcode.substr(1 + length));
  const std::uint64_t bytes = argument.size();
  return opcode.substr(0, 1) + std::string(reinterpret_cast<const char*>(&bytes), length) + argument;
}

bool ends_with(const std::string& name, std::string_view suffix) { return name.ends_with(suffix); }

void write_tar_checksum(std::string& archive, std::size_t at) {
  constexpr std::size_t kField = 148, kFieldBytes = 8;
  std::fill_n(archive.begin() + static_cast<std::ptrdiff_t>(at + kField), kFieldBytes, ' ');
  unsigned sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i) sum += static_cast<unsigned char>(archive[at + i]);
  char digits[kFieldBytes + 1];
  std::snprintf(digits, sizeof(digits), "%06o", sum);
  std::memcpy(archive.data() + at + kField, digits, 7);
}

}  // namespace

std::string mutate_pickle(const std::string& input, const MutateBytes& mutate, Random& random) {
  auto opcodes = opcodes_of(input);
  if (opcodes.empty()) return mutate(input);
  const std::size_t at = random() % opcodes.size(), other = random() % opcodes.size();
  const auto place = opcodes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 6) {
    case 0:
      opcodes.erase(place);
      break;
    case 1:
      opcodes.insert(place, std::string(opcodes[other]));
      break;
    case 2:
      std::swap(opcodes[at], opcodes[other]);
      break;
    case 3:
      opcodes.insert(place, random_opcode(random));
      break;
    case 4: {  // repeats a run of opcodes
      const std::size_t count = std::min<std::size_t>(1 + random() % 8, opcodes.size() - at);
      const std::vector<std::string> run(place, place + static_cast<std::ptrdiff_t>(count));
      opcodes.insert(place, run.begin(), run.end());
      break;
    }
    default:
      opcodes[at] = changed_argument(opcodes[at], mutate);
  }
  std::string pickle;
  for (const auto& opcode : opcodes) pickle += opcode;
  return pickle;
}

std::string mutate_zip(const std::string& input, const MutateBytes& mutate, Random& random) {
  try {
    const ScratchFile file(input);
    const StoredZip zip(file.path());
    if (zip.entries().empty() || random() % 8 == 0) return mutate(input);
    const std::size_t changed = random() % zip.entries().size();
    StoredZipWriter writer("mutated");
    for (std::size_t i = 0; i < zip.entries().size(); ++i) {
      const std::string& name = zip.entries()[i].name;
      std::string content = zip.read(zip.entries()[i]);
      if (i == changed) {
        content = ends_with(name, ".pkl")    ? mutate_pickle(content, mutate, random)
                  : ends_with(name, ".json") ? mutate_json(content, mutate, random)
                                             : mutate(content);
      }
      writer.add(name, content);
    }
    return writer.finish();
  } catch (const Error&) {
    return mutate(input);
  }
}

std::string mutate_tar(const std::string& input, const MutateBytes& mutate, Random& random) {
  const std::size_t blocks = input.size() / kTarBlock;
  if (blocks == 0) return mutate(input);
  const std::size_t at = random() % blocks * kTarBlock;
  std::string archive = input, block = mutate(input.substr(at, kTarBlock));
  block.resize(kTarBlock);
  archive.replace(at, kTarBlock, block);
  if (random() % 4 == 0) archive.insert(at, input, random() % blocks * kTarBlock, kTarBlock);
  for (std::size_t begin = 0; begin + kTarBlock <= archive.size(); begin += kTarBlock) {
    const bool is_header = std::string_view(archive).substr(begin + 257, 5) == "ustar";
    if (is_header || begin == at) write_tar_checksum(archive, begin);
  }
  return archive;
}

}  // namespace phalanx::fuzz
