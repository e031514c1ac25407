// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "datasets/text/tokenizer.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tools/data/commands.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

template <class T>
std::string as_bytes(std::span<const std::int64_t> tokens) {
  const std::vector<T> narrow(tokens.begin(), tokens.end());
  return {reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(T)};
}

}  // namespace

void write_tokens(const std::string& text, const std::string& tokenizer, const std::string& to, double train_share) {
  const auto made = make_tokenizer(tokenizer);
  const auto tokens = made->encode(read_file(text));
  const bool wide = made->size() > (1 << 16);
  const auto border = static_cast<std::size_t>(static_cast<double>(tokens.size()) * train_share);
  if (border == 0 || border == tokens.size()) {
    throw ConfigError("tokenize: " + text + " has " + std::to_string(tokens.size()) +
                      " tokens, too few for two files; use a longer text or another --train_share");
  }
  fs::create_directories(to);
  const auto write = [&](const char* name, std::span<const std::int64_t> part) {
    write_atomically(fs::path(to) / name, wide ? as_bytes<std::uint32_t>(part) : as_bytes<std::uint16_t>(part));
    std::printf("%s: %zu tokens\n", (fs::path(to) / name).c_str(), part.size());
  };
  write("train.bin", std::span(tokens).first(border));
  write("val.bin", std::span(tokens).subspan(border));
  std::printf("To train on them: dataset: {name: tokens, root: %s, vocabulary: %lld, type: %s}\n", to.c_str(),
              static_cast<long long>(made->size()), wide ? "uint32" : "uint16");
}

}  // namespace phalanx
