// SPDX-License-Identifier: Apache-2.0
#include "framework/base/elf_section.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/read_at.h"

namespace phalanx {
namespace {

constexpr unsigned char kOwnOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
constexpr std::uint64_t kLongestNames = std::uint64_t{1} << 24;

// A regular file. Bytes outside it are never read.
class File {
 public:
  explicit File(const std::string& path) : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status = {};
    if (!file_.valid() || ::fstat(file_.get(), &status) != 0) fail(errno);
    if (S_ISDIR(status.st_mode)) fail(EISDIR);
    if (S_ISREG(status.st_mode)) size_ = static_cast<std::uint64_t>(status.st_size);
  }

  // Returns false if the file does not have all of these bytes.
  bool read(void* to, std::uint64_t bytes, std::uint64_t offset) const {
    if (offset > size_ || bytes > size_ - offset) return false;
    const auto got = read_at(file_.get(), to, bytes, static_cast<std::int64_t>(offset));
    if (got < 0) fail(errno);
    return static_cast<std::uint64_t>(got) == bytes;
  }

 private:
  [[noreturn]] void fail(int problem) const {
    throw DataError(path_ + ": " + std::generic_category().message(problem));
  }

  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

bool is_elf(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == kOwnOrder && header.e_shentsize == sizeof(Elf64_Shdr);
}

std::vector<Elf64_Shdr> sections_of(const File& file) {
  Elf64_Ehdr header;
  if (!file.read(&header, sizeof(header), 0) || !is_elf(header)) return {};
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  const bool whole = file.read(sections.data(), sections.size() * sizeof(Elf64_Shdr), header.e_shoff);
  if (!whole || header.e_shstrndx >= sections.size()) return {};
  std::swap(sections.front(), sections[header.e_shstrndx]);  // the section of names comes first from here on
  return sections;
}

std::optional<std::string> text_of(const File& file, const Elf64_Shdr& section, std::uint64_t longest) {
  if (section.sh_type == SHT_NOBITS || section.sh_size > longest) return std::nullopt;
  std::string text(section.sh_size, '\0');
  return file.read(text.data(), text.size(), section.sh_offset) ? std::optional(text) : std::nullopt;
}

}  // namespace

std::optional<std::string> read_elf_section(const std::string& path, const std::string& name, std::size_t longest) {
  const File file(path);
  const auto sections = sections_of(file);
  const auto names = sections.empty() ? std::nullopt : text_of(file, sections.front(), kLongestNames);
  if (!names) return std::nullopt;
  const std::string wanted = name + '\0';
  const auto found = std::ranges::find_if(sections, [&](const Elf64_Shdr& section) {
    return section.sh_name < names->size() && names->compare(section.sh_name, wanted.size(), wanted) == 0;
  });
  return found == sections.end() ? std::nullopt : text_of(file, *found, longest);
}

}  // namespace phalanx
