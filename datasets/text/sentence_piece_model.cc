// SPDX-License-Identifier: Apache-2.0
#include "datasets/text/sentence_piece_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Fields of sentencepiece_model.proto.
constexpr std::uint64_t kPieces = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5;
constexpr std::uint64_t kPieceText = 1, kPieceScore = 2, kPieceType = 3;
constexpr std::uint64_t kCharsmap = 2;
constexpr std::uint64_t kUserDefined = 4, kLastType = 6;

// SentencePiece looks up at most so many rules, or user-defined pieces, that begin at one character.
constexpr int kMaxRules = 32, kMaxUserDefined = 64;
constexpr std::size_t kMaxTrie = 4 << 20;     // bytes; the trainer's have 0.3 MB
constexpr std::size_t kMaxReplacement = 256;  // bytes; the longest of Unicode's has 33

struct Malformed {
  std::string why;
};

// A field of a message in the format of protocol buffers.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t type = 0;    // 0: a number; 1, 5: 8 or 4 bytes; 2: bytes
  std::uint64_t value = 0;   // of type 0
  std::string_view bytes{};  // of other types

  std::string_view message() const {
    if (type != 2) throw Malformed{"field " + std::to_string(number) + " has a wrong type"};
    return bytes;
  }
};

class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const std::uint64_t key = number();
    Field field{.number = key >> 3, .type = key & 7};
    if (field.number == 0) throw Malformed{"a field has no number"};
    if (field.type == 0) {
      field.value = number();
    } else if (field.type == 1) {
      field.bytes = take(8);
    } else if (field.type == 2) {
      field.bytes = take(number());
    } else if (field.type == 5) {
      field.bytes = take(4);
    } else {
      throw Malformed{"field " + std::to_string(field.number) + " has an unknown type"};
    }
    return field;
  }

 private:
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    throw Malformed{"a number is too long"};
  }

  std::string_view take(std::uint64_t bytes) {
    if (bytes > rest_.size()) throw Malformed{"it ends early"};
    const auto taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
};

// A trie in the format of https://github.com/s-yata/darts-clone. A unit has a label in bits 0 to 7 and 31; bit 8 is set
// if a value follows; the offset of the children is in bits 10 to 30, and is multiplied by 256 if bit 9 is set.
class Trie {
 public:
  Trie(std::string_view bytes, std::string_view texts) : units_(bytes.size() / 4), texts_(texts) {
    std::memcpy(units_.data(), bytes.data(), bytes.size());
    rules_.assign(units_.size(), kNotSeen);
  }

  // Visits all units that a text can lead to. SentencePiece looks at children without checking where they are.
  void check() {
    if (most_rules_below(children_of(0)) > kMaxRules) throw Malformed{"too many rules begin at one character"};
  }

 private:
  static constexpr int kNotSeen = -1, kBeingVisited = -2;

  // A unit whose children are being visited.
  struct Visit {
    std::size_t unit = 0, children = 0;
    int label = 0, rules = 0;
  };

  // Returns the place of the 256 children of a unit, of which child L is at place ^ L.
  std::size_t children_of(std::size_t unit) const {
    const std::uint32_t word = units_.at(unit);
    const std::size_t place = unit ^ (std::size_t{word >> 10} << ((word & (1U << 9)) >> 6));
    if ((place | 0xff) >= units_.size()) throw Malformed{"a rule for characters leads out of the trie"};
    return place;
  }

  bool is_child(std::size_t unit, int label) const {
    return (units_[unit] & (1U << 31 | 0xffU)) == static_cast<std::uint32_t>(label);
  }

  // Returns 1 if a rule ends at the unit, which must have a replacement then.
  int rules_at(std::size_t unit) const {
    if ((units_[unit] >> 8 & 1U) == 0) return 0;
    const std::size_t text = units_[children_of(unit)] & 0x7fffffffU;
    const auto end = text < texts_.size() ? texts_.find('\0', text) : texts_.npos;
    if (end == texts_.npos) throw Malformed{"a rule for characters has no replacement"};
    if (end - text > kMaxReplacement) throw Malformed{"a rule replaces a character by too long a text"};
    return 1;
  }

  // Returns the largest number of rules on a path from the children at `place`. Without recursion, since paths may be
  // as long as the trie. Units may have several parents, but a unit below itself would be an endless rule.
  int most_rules_below(std::size_t place) {
    std::vector<Visit> path{{.unit = units_.size(), .children = place}};
    while (true) {
      Visit& top = path.back();
      if (top.label == 256) {
        const Visit done = top;
        path.pop_back();
        if (path.empty()) return done.rules;
        rules_[done.unit] = done.rules + rules_at(done.unit);
        path.back().rules = std::max(path.back().rules, rules_[done.unit]);
        continue;
      }
      const int label = top.label++;
      const std::size_t child = top.children ^ static_cast<std::size_t>(label);
      if (!is_child(child, label)) continue;
      if (rules_[child] == kBeingVisited) throw Malformed{"a rule for characters is endless"};
      if (rules_[child] == kNotSeen) {
        rules_[child] = kBeingVisited;
        path.push_back({.unit = child, .children = children_of(child)});
      } else {
        top.rules = std::max(top.rules, rules_[child]);
      }
    }
  }

  std::vector<std::uint32_t> units_;
  std::string_view texts_;
  std::vector<int> rules_;  // by unit: most rules on a path that begins with it, or one of the constants above
};

void check_charsmap(std::string_view charsmap) {
  if (charsmap.empty()) return;
  std::uint32_t size = 0;
  if (charsmap.size() <= sizeof(size)) throw Malformed{"the rules for characters end early"};
  std::memcpy(&size, charsmap.data(), sizeof(size));
  charsmap.remove_prefix(sizeof(size));
  if (size == 0 || size % 4 != 0 || size > kMaxTrie || size >= charsmap.size()) {
    throw Malformed{"the rules for characters have a trie of a wrong size"};
  }
  Trie(charsmap.substr(0, size), charsmap.substr(size)).check();
}

void check_normalizer(std::string_view normalizer) {
  bool found = false;
  for (Message message(normalizer); const auto field = message.next();) {
    if (field->number != kCharsmap) continue;
    if (std::exchange(found, true)) throw Malformed{"the rules for characters are there twice"};
    check_charsmap(field->message());
  }
}

// Adds the text of a user-defined piece to `user_defined`.
void check_piece(std::string_view piece, std::vector<std::string_view>& user_defined) {
  std::string_view text;
  std::uint64_t type = 1;
  for (Message message(piece); const auto field = message.next();) {
    if (field->number == kPieceText) text = field->message();
    if (field->number == kPieceType) {
      if (field->type != 0 || field->value < 1 || field->value > kLastType)
        throw Malformed{"a piece has no known type"};
      type = field->value;
    }
    if (field->number == kPieceScore) {
      float score = 0;
      if (field->type != 5) throw Malformed{"a piece has a score that is not a number"};
      std::memcpy(&score, field->bytes.data(), sizeof(score));
      if (!std::isfinite(score)) throw Malformed{"a piece has a score that is not a number"};
    }
  }
  if (text.empty() || text.find('\0') != text.npos) throw Malformed{"a piece is empty or has a NUL"};
  if (type == kUserDefined) user_defined.push_back(text);
}

// In sorted order, the pieces with which a piece begins are among those before it.
void check_user_defined(std::vector<std::string_view> pieces) {
  std::ranges::sort(pieces);
  std::vector<std::string_view> beginnings;
  for (const auto piece : pieces) {
    while (!beginnings.empty() && !piece.starts_with(beginnings.back())) beginnings.pop_back();
    beginnings.push_back(piece);
    if (beginnings.size() > static_cast<std::size_t>(kMaxUserDefined)) {
      throw Malformed{"too many user-defined pieces begin with each other"};
    }
  }
}

void check_model(std::string_view model) {
  std::vector<std::string_view> user_defined;
  std::vector<std::uint64_t> seen;  // fields that occur once; protocol buffers would merge several
  for (Message message(model); const auto field = message.next();) {
    if (field->number == kPieces) check_piece(field->message(), user_defined);
    if (field->number == kNormalizer || field->number == kDenormalizer) check_normalizer(field->message());
    if (field->number == kTrainer || field->number == kNormalizer || field->number == kDenormalizer) {
      if (std::ranges::find(seen, field->number) != seen.end()) {
        throw Malformed{"field " + std::to_string(field->number) + " is there twice"};
      }
      seen.push_back(field->number);
    }
  }
  check_user_defined(std::move(user_defined));
}

}  // namespace

void check_sentence_piece_model(const std::string& file, std::string_view model) {
  try {
    check_model(model);
  } catch (const Malformed& malformed) {
    throw DataError(file + ": not a model that SentencePiece's trainer wrote: " + malformed.why);
  }
}

}  // namespace phalanx
