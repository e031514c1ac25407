// SPDX-License-Identifier: Apache-2.0
#include "framework/base/elf_section.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "framework/base/error.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kSection = ".text_of_a_test";

// Builds a file that has the sections of a shared library: a header, the table, one section, and the names.
struct Library {
  Elf64_Ehdr header{};
  Elf64_Shdr sections[3]{};
  std::string text = "a stamp", names = std::string(1, '\0') + kSection + '\0' + ".names" + '\0';

  Library() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_shoff = sizeof(header);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 3;
    header.e_shstrndx = 2;
    describe(sections[1], 1, SHT_PROGBITS, sizeof(header) + sizeof(sections), text);
    describe(sections[2], 1 + std::strlen(kSection) + 1, SHT_STRTAB, sections[1].sh_offset + text.size(), names);
  }

  static void describe(Elf64_Shdr& section, std::size_t name, Elf64_Word type, Elf64_Off offset,
                       const std::string& content) {
    section.sh_name = static_cast<Elf64_Word>(name);
    section.sh_type = type;
    section.sh_offset = offset;
    section.sh_size = content.size();
  }

  std::string bytes() const {
    return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) +
           std::string(reinterpret_cast<const char*>(sections), sizeof(sections)) + text + names;
  }
};

class ElfSection : public ::testing::Test {
 protected:
  ~ElfSection() override { std::filesystem::remove(path_); }

  std::optional<std::string> read(const std::string& bytes, std::size_t longest = 100) {
    write_atomically(path_, bytes);
    return read_elf_section(path_, kSection, longest);
  }

  const std::string path_ = ::testing::TempDir() + "elf_section_" + std::to_string(::getpid());
};

TEST_F(ElfSection, IsFoundByItsName) {
  EXPECT_EQ(read(Library().bytes()), "a stamp");
  EXPECT_EQ(read_elf_section(path_, ".text_of_a_tes", 100), std::nullopt);
  EXPECT_EQ(read_elf_section(path_, ".names", 100), Library().names);
}

TEST_F(ElfSection, IsNotReadWhereItIsTooLong) { EXPECT_EQ(read(Library().bytes(), 6), std::nullopt); }

TEST_F(ElfSection, IsNotFoundInOtherFiles) {
  EXPECT_EQ(read(""), std::nullopt);
  EXPECT_EQ(read(std::string(1000, 'x')), std::nullopt);
  EXPECT_EQ(read_elf_section("/dev/zero", kSection, 100), std::nullopt);
}

TEST_F(ElfSection, IsNotFoundInADamagedFile) {
  const std::uint64_t far = std::numeric_limits<std::uint64_t>::max() - 8;
  const auto damaged = [](auto&& damage) {
    Library library;
    damage(library);
    return library.bytes();
  };
  EXPECT_EQ(read(damaged([&](Library& l) { l.header.e_shoff = far; })), std::nullopt);
  EXPECT_EQ(read(damaged([](Library& l) { l.header.e_shnum = 0xffff; })), std::nullopt);
  EXPECT_EQ(read(damaged([](Library& l) { l.header.e_shnum = 0; })), std::nullopt);
  EXPECT_EQ(read(damaged([](Library& l) { l.header.e_shstrndx = 3; })), std::nullopt);
  EXPECT_EQ(read(damaged([&](Library& l) { l.sections[1].sh_offset = far; })), std::nullopt);
  EXPECT_EQ(read(damaged([](Library& l) { l.sections[1].sh_type = SHT_NOBITS; })), std::nullopt);
  EXPECT_EQ(read(damaged([](Library& l) { l.sections[1].sh_name = 0xffffffff; })), std::nullopt);
  EXPECT_EQ(read(damaged([&](Library& l) { l.sections[2].sh_size = far; })), std::nullopt);
}

TEST_F(ElfSection, AFileThatCannotBeReadIsNamedWithTheReason) {
  EXPECT_THAT([] { read_elf_section("/nowhere/lib.so", kSection, 100); },
              ThrowsMessage<DataError>(HasSubstr("/nowhere/lib.so: No such file")));
}

}  // namespace
}  // namespace phalanx
