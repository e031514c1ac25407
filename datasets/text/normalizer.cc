// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/normalizer.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/text/byte_alphabet.h"
#include "datasets/text/oniguruma_pattern.h"
#include "datasets/text/precompiled_charsmap.h"
#include "datasets/text/unicode.h"
#include "datasets/text/unsupported.h"
#include "datasets/text/word_pattern.h"

namespace phalanx {
namespace {

// Replaces each character of a text with the output of f(code, result), which appends to `result`.
template <class F>
void map_characters(std::string& text, const F& f) {
  std::string result;
  result.reserve(text.size());
  unicode::for_each_character(text, [&](char32_t code, std::size_t, std::size_t) { f(code, result); });
  text = std::move(result);
}

class NormalFormOf final : public Normalizer {
 public:
  explicit NormalFormOf(unicode::NormalForm form) : form_(form) {}
  void apply(std::string& text) const override { text = unicode::normalized(text, form_); }

 private:
  unicode::NormalForm form_;
};

class ByteLevelNormalizer final : public Normalizer {
 public:
  void apply(std::string& text) const override { text = in_byte_alphabet(text); }
};

void to_lower_case(std::string& text) {
  map_characters(text, [](char32_t code, std::string& result) { unicode::append_lower_case(result, code); });
}

class Lowercase final : public Normalizer {
 public:
  void apply(std::string& text) const override { to_lower_case(text); }
};

class StripAccents final : public Normalizer {
 public:
  void apply(std::string& text) const override {
    map_characters(text, [](char32_t code, std::string& result) {
      if (!unicode::is_mark(code)) unicode::append(result, code);
    });
  }
  bool keeps_the_beginning() const override { return false; }
};

// Cleans texts for machine translation, like SentencePiece's rules nmt_nfkc.
class Nmt final : public Normalizer {
 public:
  void apply(std::string& text) const override {
    map_characters(text, [](char32_t code, std::string& result) {
      if (is_removed(code)) return;
      unicode::append(result, is_space(code) ? U' ' : code);
    });
  }
  bool keeps_the_beginning() const override { return false; }

 private:
  static bool is_removed(char32_t code) {
    return (code >= 1 && code <= 8) || code == 0xb || (code >= 0xe && code <= 0x1f) || code == 0x7f || code == 0x8f ||
           code == 0x9f;
  }
  static bool is_space(char32_t code) {
    return code == '\t' || code == '\n' || code == 0xc || code == '\r' || code == 0x1680 ||
           (code >= 0x200b && code <= 0x200f) || code == 0x2028 || code == 0x2029 || code == 0x2581 || code == 0xfeff ||
           code == 0xfffd;
  }
};

class StripNormalizer final : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}

  void apply(std::string& text) const override {
    std::string_view rest = text;
    while (right_ && !rest.empty()) {
      const auto [code, size] = unicode::last_character(rest);
      if (!unicode::is_white_space(code)) break;
      rest.remove_suffix(size);
    }
    while (left_ && !rest.empty()) {
      const auto [code, size] = unicode::first_character(rest);
      if (!unicode::is_white_space(code)) break;
      rest.remove_prefix(size);
    }
    text = std::string(rest);
  }
  bool keeps_the_beginning() const override { return !left_; }

 private:
  bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string start) : start_(std::move(start)) {}
  void apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, start_);
  }
  bool keeps_the_beginning() const override { return start_.empty(); }

 private:
  std::string start_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(const std::string& pattern, std::string content, const std::string& name)
      : pattern_(pattern, name), content_(std::move(content)) {}

  void apply(std::string& text) const override {
    std::string result;
    pattern_.for_each_span(text, [&](Span span) {
      result +=
          span.is_match ? std::string_view(content_) : std::string_view(text).substr(span.begin, span.end - span.begin);
    });
    text = std::move(result);
  }
  bool keeps_the_beginning() const override { return !content_.empty(); }

 private:
  WordPattern pattern_;
  std::string content_;
};

// Normalizes as BERT does (Devlin et al. 2018).
class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const JsonValue& json)
      : clean_(json.get<bool>("clean_text")),
        chinese_(json.get<bool>("handle_chinese_chars")),
        lower_case_(json.get<bool>("lowercase")),
        accents_(json.get_or("strip_accents", lower_case_)) {}

  void apply(std::string& text) const override {
    map_characters(text, [&](char32_t code, std::string& result) {
      if (clean_ && unicode::is_control(code)) return;
      if (clean_ && unicode::is_white_space(code)) code = ' ';
      const bool alone = chinese_ && unicode::is_chinese(code);
      if (alone) result += ' ';
      unicode::append(result, code);
      if (alone) result += ' ';
    });
    if (accents_) {
      text = unicode::normalized(text, unicode::NormalForm::kNfd);
      map_characters(text, [](char32_t code, std::string& result) {
        if (!unicode::is_nonspacing_mark(code)) unicode::append(result, code);
      });
    }
    if (lower_case_) to_lower_case(text);
  }
  bool keeps_the_beginning() const override { return false; }

 private:
  bool clean_, chinese_, lower_case_, accents_;
};

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const JsonValue& json) : rules_(json.at("precompiled_charsmap")) {}
  void apply(std::string& text) const override { text = rules_.normalized(text); }
  bool keeps_the_beginning() const override { return false; }

 private:
  PrecompiledCharsmap rules_;
};

class SequenceNormalizer final : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}

  void apply(std::string& text) const override {
    for (const auto& step : steps_) step->apply(text);
  }
  bool keeps_the_beginning() const override {
    for (const auto& step : steps_) {
      if (!step->keeps_the_beginning()) return false;
    }
    return true;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const JsonValue& json, const std::string& name) {
  using unicode::NormalForm;
  if (json.is_null()) return nullptr;
  const auto type = json.get<std::string>("type");
  if (type == "NFC") return std::make_unique<NormalFormOf>(NormalForm::kNfc);
  if (type == "NFD") return std::make_unique<NormalFormOf>(NormalForm::kNfd);
  if (type == "NFKC") return std::make_unique<NormalFormOf>(NormalForm::kNfkc);
  if (type == "NFKD") return std::make_unique<NormalFormOf>(NormalForm::kNfkd);
  if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "Strip")
    return std::make_unique<StripNormalizer>(json.get<bool>("strip_left"), json.get<bool>("strip_right"));
  if (type == "Prepend") return std::make_unique<Prepend>(json.get<std::string>("prepend"));
  if (type == "BertNormalizer") return std::make_unique<BertNormalizer>(json);
  if (type == "Precompiled") return std::make_unique<Precompiled>(json);
  if (type == "Replace") {
    return std::make_unique<ReplaceNormalizer>(pattern_of(json.at("pattern")), json.get<std::string>("content"), name);
  }
  if (type != "Sequence") refuse_unsupported(json, type);
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const auto& step : json.at("normalizers").elements()) {
    if (!step.is_null()) steps.push_back(make_normalizer(step, name));
  }
  return std::make_unique<SequenceNormalizer>(std::move(steps));
}

}  // namespace phalanx
