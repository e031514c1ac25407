// SPDX-License-Identifier: Apache-2.0
// Files of datasets and tokenizers.
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/files/idx_file.h"
#include "datasets/files/npy_file.h"
#include "datasets/images/decode.h"
#include "datasets/images/tar_index.h"
#include "datasets/tables/delimited_table.h"
#include "datasets/tables/encoding.h"
#include "datasets/text/tokenizer_json.h"
#include "tests/fuzz/mutators.h"
#include "tests/fuzz/scratch_file.h"
#include "tests/fuzz/tokenized_text.h"

namespace phalanx::fuzz {
namespace {

void read_idx_array(std::string_view input) {
  const ScratchFile file(input);
  read_idx(file.path(), 3);
}

// The first array of an archive is called x.
void read_numpy(std::string_view input) {
  const ScratchFile file(input);
  const auto array = read_npy(file.path(), input.starts_with("PK") ? "x" : "");
  double sum = 0;
  for (std::int64_t i = 0; i < array.size(); ++i) sum += array[i];
}

void read_tar(std::string_view input) {
  const ScratchFile file(input);
  index_tar(file.path());
}

void read_table(std::string_view input) {
  const ScratchFile file(input);
  const auto table = read_delimited_table(file.path(), {});
  std::vector<std::int64_t> rows(static_cast<std::size_t>(table->rows()));
  std::iota(rows.begin(), rows.end(), 0);
  TableEncoding::fit({}, *table, rows).encode(*table, rows);
}

void read_encoding(std::string_view input) { TableEncoding::from_json(std::string(input), "input").features(); }

void read_image(std::string_view input) {
  decode_image(input, {.turn_upright = true, .background = {1, 2, 3}}, "input");
  decode_image(input, {.color = false, .smallest_side = 8}, "input");
}

void read_tokenizer(std::string_view input) {
  const ScratchFile file(input);
  const auto tokenizer = read_tokenizer_json(file.path());
  tokenizer->decode(tokenizer->encode(kTokenizedText));
}

const bool kDatasetsAdded = add_target({"idx", read_idx_array}) && add_target({"numpy", read_numpy}) &&
                            add_target({"tar", read_tar, mutate_tar}) && add_target({"table", read_table}) &&
                            add_target({"encoding", read_encoding, mutate_json}) && add_target({"image", read_image}) &&
                            add_target({"tokenizer", read_tokenizer, mutate_json});

}  // namespace
}  // namespace phalanx::fuzz
