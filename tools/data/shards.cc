// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "datasets/files/image_files.h"
#include "datasets/images/tar_entry.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tools/data/commands.h"
#include "tools/data/sample_some.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

std::string numbered(std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

void write_split(const std::string& split, const std::vector<ImageFile>& files, const fs::path& to,
                 std::int64_t per_shard, std::int64_t seed) {
  if (files.empty()) return;
  std::vector<std::int64_t> order(files.size());
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, RandomStream(static_cast<std::uint64_t>(seed)));
  std::int64_t shard = 0;
  for (std::int64_t begin = 0; begin < std::ssize(files); begin += per_shard, ++shard) {
    std::string archive;
    for (auto i = begin; i < std::min(begin + per_shard, std::ssize(files)); ++i) {
      const auto& [path, label] = files[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
      const auto name = numbered(i, 8);
      archive += tar_entry(name + path.extension().string(), read_file(path));
      archive += tar_entry(name + ".cls", std::to_string(label));
    }
    write_atomically(to / (split + "-" + numbered(shard, 5) + ".tar"), archive + tar_end());
  }
  std::printf("%s: %zu images in %lld archives\n", split.c_str(), files.size(), static_cast<long long>(shard));
}

}  // namespace

void write_shards(const std::string& from, const std::string& to, std::int64_t per_shard, std::int64_t seed) {
  const auto folders = find_images(from);
  std::string names;
  for (const auto& name : folders.classes) names += name + "\n";
  fs::create_directories(to);
  write_atomically(fs::path(to) / "classes.txt", names);
  write_split("train", folders.train, to, per_shard, seed);
  write_split("val", folders.validation, to, per_shard, seed);
  write_split("test", folders.test, to, per_shard, seed);
}

}  // namespace phalanx
