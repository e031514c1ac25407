// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/pre_tokenizer.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "datasets/text/byte_alphabet.h"
#include "datasets/text/oniguruma_pattern.h"
#include "datasets/text/split_behavior.h"
#include "datasets/text/unicode.h"
#include "datasets/text/unsupported.h"
#include "datasets/text/word_pattern.h"

namespace phalanx {
namespace {

constexpr const char* kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|)"
                                     R"(\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+)";

using CharacterPredicate = std::function<bool(char32_t)>;

// Splits at the matches of a pattern.
class Split final : public PreTokenizer {
 public:
  Split(const std::string& pattern, SplitBehavior behavior, bool invert, const std::string& name)
      : pattern_(pattern, name), behavior_(behavior), invert_(invert) {}

  void split(std::string_view text, bool is_first, const Word& word) const override {
    const PieceMaker::Piece piece = [&](std::size_t begin, std::size_t end) {
      word(text.substr(begin, end - begin), is_first && begin == 0);
    };
    PieceMaker maker(behavior_, piece);
    pattern_.for_each_span(text, [&](Span span) {
      span.is_match ^= invert_;
      maker.add(span);
    });
    maker.finish();
  }

 private:
  WordPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// Splits at the characters of a class.
class CharacterSplit final : public PreTokenizer {
 public:
  CharacterSplit(CharacterPredicate holds, SplitBehavior behavior) : holds_(std::move(holds)), behavior_(behavior) {}

  void split(std::string_view text, bool is_first, const Word& word) const override {
    const PieceMaker::Piece piece = [&](std::size_t begin, std::size_t end) {
      word(text.substr(begin, end - begin), is_first && begin == 0);
    };
    PieceMaker maker(behavior_, piece);
    std::size_t begin = 0;
    unicode::for_each_character(text, [&](char32_t code, std::size_t at, std::size_t size) {
      if (!holds_(code)) return;
      if (begin < at) maker.add({begin, at, false});
      maker.add({at, at + size, true});
      begin = at + size;
    });
    if (begin < text.size()) maker.add({begin, text.size(), false});
    maker.finish();
  }

 private:
  CharacterPredicate holds_;
  SplitBehavior behavior_;
};

// Splits into runs of word characters and runs of other characters. Drops white space.
class Whitespace final : public PreTokenizer {
 public:
  void split(std::string_view text, bool is_first, const Word& word) const override {
    enum class Kind { kSpace, kWord, kOther } kind = Kind::kSpace;
    std::size_t begin = 0;
    const auto emit = [&](std::size_t end) {
      if (kind != Kind::kSpace && begin < end) word(text.substr(begin, end - begin), is_first && begin == 0);
      begin = end;
    };
    unicode::for_each_character(text, [&](char32_t code, std::size_t at, std::size_t) {
      const Kind next = unicode::is_white_space(code) ? Kind::kSpace
                        : unicode::is_word(code)      ? Kind::kWord
                                                      : Kind::kOther;
      if (next == kind) return;
      emit(at);
      kind = next;
    });
    emit(text.size());
  }
};

// Returns words in the byte alphabet.
class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  ByteLevelPreTokenizer(bool prefix_space, bool use_regex, const std::string& name) : prefix_space_(prefix_space) {
    if (use_regex) words_ = std::make_unique<Split>(kGpt2Pattern, SplitBehavior::kIsolated, /*invert=*/false, name);
  }

  void split(std::string_view text, bool is_first, const Word& word) const override {
    std::string changed;
    if (prefix_space_ && !text.starts_with(' ')) {
      changed = " " + std::string(text);
      text = changed;
    }
    if (!words_) return word(in_byte_alphabet(text), is_first);
    words_->split(text, is_first, [&](std::string_view part, bool first) { word(in_byte_alphabet(part), first); });
  }

 private:
  bool prefix_space_;
  std::unique_ptr<Split> words_;
};

// Replaces spaces by a printable character, with which each word begins.
class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  MetaspacePreTokenizer(std::string replacement, std::string scheme, bool split)
      : replacement_(std::move(replacement)),
        scheme_(std::move(scheme)),
        split_([space = unicode::first_character(replacement_).code](char32_t code) { return code == space; },
               SplitBehavior::kMergedWithNext),
        splits_(split) {}

  void split(std::string_view text, bool is_first, const Word& word) const override {
    std::string changed;
    if (scheme_ == "always" || (scheme_ == "first" && is_first)) {
      if (!text.starts_with(' ') && !text.starts_with(replacement_)) changed = replacement_;
    }
    for (const char byte : text) {
      if (byte == ' ') {
        changed += replacement_;
      } else {
        changed += byte;
      }
    }
    if (!splits_) return word(changed, is_first);
    split_.split(changed, is_first, word);
  }

 private:
  std::string replacement_, scheme_;
  CharacterSplit split_;
  bool splits_;
};

class SequencePreTokenizer final : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}

  void split(std::string_view text, bool is_first, const Word& word) const override { run(0, text, is_first, word); }

 private:
  void run(std::size_t step, std::string_view text, bool is_first, const Word& word) const {
    if (step == steps_.size()) return word(text, is_first);
    if (step + 1 == steps_.size()) return steps_[step]->split(text, is_first, word);
    steps_[step]->split(text, is_first, [&](std::string_view part, bool first) { run(step + 1, part, first, word); });
  }

  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

std::unique_ptr<PreTokenizer> at_characters(CharacterPredicate holds, SplitBehavior behavior) {
  return std::make_unique<CharacterSplit>(std::move(holds), behavior);
}

std::unique_ptr<PreTokenizer> make_metaspace(const JsonValue& json) {
  const auto replacement = json.get<std::string>("replacement");
  if (replacement.empty() || unicode::first_character(replacement).size != replacement.size()) {
    json.refuse("the replacement \"" + replacement + "\" is not one character");
  }
  const bool prefix = json.get_or("add_prefix_space", true);
  const auto scheme = json.get_or<std::string>("prepend_scheme", prefix ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    refuse_unsupported(json, "prepend_scheme " + scheme);
  if (!prefix && scheme != "never") json.refuse("add_prefix_space does not fit its prepend_scheme");
  return std::make_unique<MetaspacePreTokenizer>(replacement, scheme, json.get_or("split", true));
}

std::unique_ptr<PreTokenizer> make_split(const JsonValue& json, const std::string& name) {
  return std::make_unique<Split>(pattern_of(json.at("pattern")), split_behavior_of(json.at("behavior")),
                                 json.get_or("invert", false), name);
}

}  // namespace

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonValue& json, const std::string& name) {
  using enum SplitBehavior;
  if (json.is_null()) return nullptr;
  const auto type = json.get<std::string>("type");
  if (type == "ByteLevel") {
    return std::make_unique<ByteLevelPreTokenizer>(json.get<bool>("add_prefix_space"), json.get_or("use_regex", true),
                                                   name);
  }
  if (type == "Split") return make_split(json, name);
  if (type == "Metaspace") return make_metaspace(json);
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return at_characters(unicode::is_white_space, kRemoved);
  if (type == "Digits") {
    return at_characters(unicode::is_numeric, json.get<bool>("individual_digits") ? kIsolated : kContiguous);
  }
  if (type == "Punctuation") {
    return at_characters(unicode::is_punctuation,
                         json.has("behavior") ? split_behavior_of(json.at("behavior")) : kIsolated);
  }
  if (type == "CharDelimiterSplit") {
    const auto text = json.get<std::string>("delimiter");
    if (text.empty()) json.refuse("the delimiter is empty");
    return at_characters([code = unicode::first_character(text).code](char32_t other) { return other == code; },
                         kRemoved);
  }
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  if (type == "BertPreTokenizer") {
    steps.push_back(at_characters(unicode::is_white_space, kRemoved));
    steps.push_back(at_characters(unicode::is_punctuation, kIsolated));
    return std::make_unique<SequencePreTokenizer>(std::move(steps));
  }
  if (type != "Sequence") refuse_unsupported(json, type);
  for (const auto& step : json.at("pretokenizers").elements()) {
    if (!step.is_null()) steps.push_back(make_pre_tokenizer(step, name));
  }
  return std::make_unique<SequencePreTokenizer>(std::move(steps));
}

}  // namespace phalanx
