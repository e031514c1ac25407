// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/tokenizer_json.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "datasets/text/byte_pair_encoding.h"
#include "datasets/text/token_model.h"
#include "datasets/text/token_pipeline.h"
#include "datasets/text/unsupported.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/json.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

JsonValue parse(const fs::path& file) { return parse_json(read_file(file), file.string()); }

std::optional<JsonValue> part(const JsonValue& json, const char* name) {
  if (!json.has(name) || json.at(name).is_null()) return std::nullopt;
  return json.at(name);
}

std::pair<std::string, std::string> merge_of(const std::string& text, const std::string& name) {
  const auto space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    throw DataError(name + ": the merge \"" + text + "\" is not a pair");
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

Vocabulary vocabulary_of(const JsonValue& json) {
  Vocabulary vocabulary;
  for (const auto& [text, number] : json.members()) vocabulary.emplace(text, number.as<std::int64_t>());
  return vocabulary;
}

// Old files have no type.
std::string type_of(const JsonValue& model) {
  if (model.has("type")) return model.get<std::string>("type");
  if (model.has("merges")) return "BPE";
  if (model.at("vocab").is_array()) return "Unigram";
  return model.has("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

BytePairs read_byte_pairs(const JsonValue& model, const std::string& name) {
  if (model.get_or("dropout", 0.0) != 0) refuse_unsupported(model, "dropout");
  BytePairs pairs{.vocabulary = vocabulary_of(model.at("vocab")),
                  .fuse_unknown = model.get_or("fuse_unk", false),
                  .byte_fallback = model.get_or("byte_fallback", false),
                  .ignore_merges = model.get_or("ignore_merges", false),
                  .prefix = model.get_or<std::string>("continuing_subword_prefix", ""),
                  .suffix = model.get_or<std::string>("end_of_word_suffix", "")};
  if (const auto unknown = part(model, "unk_token")) pairs.unknown = unknown->as<std::string>();
  for (const auto& merge : model.at("merges").elements()) {
    if (merge.is_string()) {
      const auto text = merge.as<std::string>();
      if (!text.starts_with("#version")) pairs.merges.push_back(merge_of(text, name));
      continue;
    }
    auto pair = merge.as<std::vector<std::string>>();
    if (pair.size() != 2) merge.refuse("has " + std::to_string(pair.size()) + " tokens; a merge has two");
    pairs.merges.emplace_back(std::move(pair[0]), std::move(pair[1]));
  }
  return pairs;
}

UnigramPieces read_pieces(const JsonValue& model) {
  UnigramPieces pieces{.byte_fallback = model.get_or("byte_fallback", false)};
  if (const auto unknown = part(model, "unk_id")) pieces.unknown = unknown->as<std::int64_t>();
  for (const auto& piece : model.at("vocab").elements()) {
    const auto pair = piece.elements();
    if (pair.size() != 2) piece.refuse("is not a text and a score");
    pieces.pieces.emplace_back(pair[0].as<std::string>(), pair[1].as<double>());
  }
  return pieces;
}

// Sets the model of the pipeline and the texts of its tokens.
class ModelReader {
 public:
  ModelReader(TokenPipeline& pipeline, std::string name) : pipeline_(pipeline), name_(std::move(name)) {}

  void read(const JsonValue& model) {
    const auto type = type_of(model);
    if (type == "BPE") return set(read_byte_pairs(model, name_));
    if (type == "Unigram") {
      const auto pieces = read_pieces(model);
      for (const auto& [text, score] : pieces.pieces) {
        vocabulary_.insert_or_assign(text, std::ssize(pipeline_.texts));
        pipeline_.texts.emplace_back(TokenText{text});
      }
      pipeline_.model = make_unigram(pieces, name_);
    } else if (type == "WordPiece") {
      vocabulary_ = vocabulary_of(model.at("vocab"));
      pipeline_.model = make_word_piece(vocabulary_, model.get<std::string>("unk_token"),
                                        model.get<std::string>("continuing_subword_prefix"),
                                        model.get<std::int64_t>("max_input_chars_per_word"), name_);
      put_vocabulary();
    } else if (type == "WordLevel") {
      vocabulary_ = vocabulary_of(model.at("vocab"));
      pipeline_.model = make_word_level(vocabulary_, model.get<std::string>("unk_token"), name_);
      put_vocabulary();
    } else {
      refuse_unsupported(model, type);
    }
  }

  void set(BytePairs pairs) {
    vocabulary_ = pairs.vocabulary;
    pipeline_.model = make_byte_pair_encoding(std::move(pairs), name_);
    put_vocabulary();
  }

  // The library gives an added token that the model does not have the next number, whatever its "id" says.
  void add(const JsonValue& json) {
    AddedToken token{.text = json.get<std::string>("content"),
                     .token = json.get<std::int64_t>("id"),
                     .lstrip = json.get_or("lstrip", false),
                     .rstrip = json.get_or("rstrip", false),
                     .single_word = json.get_or("single_word", false),
                     .normalized = json.get_or("normalized", false)};
    if (token.text.empty()) json.refuse("the added token " + std::to_string(token.token) + " has no text");
    const auto known = vocabulary_.find(token.text);
    const auto number = known != vocabulary_.end() ? known->second : next_;
    if (token.token != number) {
      refuse_unsupported(json, "the number " + std::to_string(token.token) + " of \"" + token.text +
                                   "\", which is the token " + std::to_string(number) + ',');
    }
    if (known == vocabulary_.end()) vocabulary_.emplace(token.text, next_++);
    put(token.text, number, /*added=*/true);
    pipeline_.added.push_back(std::move(token));
  }

  // Numbers of added tokens begin at the number of tokens of the model.
  void end_model() { next_ = std::ssize(vocabulary_); }

 private:
  void put(const std::string& text, std::int64_t number, bool added) {
    if (number >= std::ssize(pipeline_.texts)) pipeline_.texts.resize(static_cast<std::size_t>(number) + 1);
    pipeline_.texts[static_cast<std::size_t>(number)] = TokenText{text, added};
  }

  void put_vocabulary() {
    // A vocabulary may skip numbers. The limit exists because memory, and a model's embedding, grow with the largest
    // number.
    const auto most = 2 * std::ssize(vocabulary_) + 2;
    for (const auto& [text, number] : vocabulary_) {
      if (number < 0 || number >= most) {
        throw DataError(name_ + ": token \"" + text + "\" has the number " + std::to_string(number) +
                        "; the numbers of this vocabulary must lie in [0, " + std::to_string(most) + ")");
      }
      put(text, number, /*added=*/false);
    }
  }

  TokenPipeline& pipeline_;
  std::string name_;
  Vocabulary vocabulary_;
  std::int64_t next_ = 0;
};

bool has_step(const JsonValue& json, const char* list, const auto& holds) {
  if (json.is_null()) return false;
  if (json.get<std::string>("type") != "Sequence") return holds(json);
  return std::ranges::any_of(json.at(list).elements(), [&](const auto& step) { return has_step(step, list, holds); });
}

bool is_byte_level(const JsonValue& step) { return step.get<std::string>("type") == "ByteLevel"; }

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const fs::path& file) {
  const std::string name = file.string();
  const auto json = parse(file);
  TokenPipeline pipeline;
  ModelReader reader(pipeline, name);
  reader.read(json.at("model"));
  reader.end_model();
  if (const auto added = part(json, "added_tokens")) {
    for (const auto& token : added->elements()) reader.add(token);
  }
  const auto normalizer = part(json, "normalizer"), pre_tokenizer = part(json, "pre_tokenizer");
  if (normalizer) pipeline.normalizer = make_normalizer(*normalizer, name);
  if (pre_tokenizer) {
    pipeline.pre_tokenizer = make_pre_tokenizer(*pre_tokenizer, name);
    const auto is_first = [](const JsonValue& step) {
      return step.get_or<std::string>("prepend_scheme", "") == "first";
    };
    if (pipeline.normalizer && !pipeline.normalizer->keeps_the_beginning() &&
        has_step(*pre_tokenizer, "pretokenizers", is_first)) {
      refuse_unsupported(*pre_tokenizer, "prepend_scheme first after a normalizer that changes where a text begins");
    }
  }
  const bool bytes = (pre_tokenizer && has_step(*pre_tokenizer, "pretokenizers", is_byte_level)) ||
                     (normalizer && has_step(*normalizer, "normalizers", is_byte_level));
  if (const auto decoder = part(json, "decoder")) {
    pipeline.decoder = make_decoder(*decoder, name);
  } else {
    pipeline.decoder = bytes ? make_byte_level_decoder() : make_decoder(parse_json("null", name), name);
  }
  return make_tokenizer(std::move(pipeline), name);
}

std::unique_ptr<Tokenizer> read_gpt2_files(const fs::path& folder) {
  const fs::path vocabulary = folder / "vocab.json", merges = folder / "merges.txt";
  const std::string name = folder.string();
  const auto json = parse(vocabulary);
  BytePairs pairs{.vocabulary = vocabulary_of(json)};
  const std::string text = read_file(merges);
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::istringstream lines(text.substr(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with("#version")) continue;
    pairs.merges.push_back(merge_of(line, merges.string()));
  }
  TokenPipeline pipeline;
  constexpr const char* kEnd = "<|endoftext|>";
  if (json.has(kEnd)) pipeline.added.push_back({.text = kEnd, .token = json.get<std::int64_t>(kEnd)});
  ModelReader(pipeline, name).set(std::move(pairs));
  pipeline.pre_tokenizer =
      make_pre_tokenizer(parse_json(R"({"type": "ByteLevel", "add_prefix_space": false})", vocabulary.string()), name);
  pipeline.decoder = make_byte_level_decoder();
  return make_tokenizer(std::move(pipeline), name);
}

}  // namespace phalanx
