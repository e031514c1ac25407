// SPDX-License-Identifier: Apache-2.0
// Implements the opcodes of Python's pickletools, protocols 2 to 5, that torch.save() emits.
#include "framework/base/storage/unpickler.h"

#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using Node = PickleNode;

// An opcode may copy a value that an earlier one has made, as often as a pickle likes. The copies that torch.save()
// causes, such as the names of storages, are fewer than this many times the bytes of the pickle.
constexpr std::uint64_t kMaxCopies = 64;
constexpr std::uint64_t kFreeCopies = 1 << 20;  // bytes

class Unpickler {
 public:
  Unpickler(const std::string& file, std::string_view pickle, bool plain)
      : file_(file), pickle_(pickle), plain_(plain) {}

  Unpickled run() {
    while (true) {
      begin_ = at_;
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') break;
      if (!marks_and_memo(code) && !constant(code) && !container(code)) call(code);
    }
    const Node* const root = pop();
    return {std::move(nodes_), root};
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw DataError(file_ + ", byte " + std::to_string(begin_) + ": " + why);
  }

  std::string_view take(std::uint64_t bytes) {
    if (bytes > pickle_.size() - at_) refuse("the pickle ends too early");
    const auto text = pickle_.substr(at_, bytes);
    at_ += bytes;
    return text;
  }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::string line() {
    const auto end = pickle_.find('\n', at_);
    if (end == std::string_view::npos) refuse("the pickle ends within a name");
    std::string text(pickle_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }

  // Counts bytes that an opcode copies from earlier values, before it copies them.
  void count_copy(std::uint64_t bytes) {
    copied_ += bytes;
    if (copied_ > kFreeCopies + kMaxCopies * pickle_.size()) {
      refuse("the pickle copies its values so often that they would take more than " +
             std::to_string(kFreeCopies + kMaxCopies * pickle_.size()) + " bytes");
    }
  }

  Node* make(Node::Kind kind) {
    nodes_.emplace_back().kind = kind;
    return &nodes_.back();
  }
  Node* make_view(Node::Kind kind, PickledView view) {
    Node* const made = make(kind);
    made->tensor = std::make_unique<PickledView>(std::move(view));
    return made;
  }
  Node* push(Node::Kind kind) {
    stack_.push_back(make(kind));
    return stack_.back();
  }
  void push_text(std::string_view text) { push(Node::kText)->text = text; }
  void push_int(std::int64_t value) { push(Node::kInt)->integer = value; }
  void push_other(const std::string& made_by) {
    if (plain_) refuse("makes " + (made_by.empty() ? "an object" : made_by) + ", which is not a plain value");
    count_copy(made_by.size());
    push(Node::kOther)->text = made_by;
  }
  void push_global(std::string name) { push(Node::kGlobal)->text = std::move(name); }

  Node* top() const {
    if (stack_.empty()) refuse("nothing is on the stack; the pickle is damaged");
    return stack_.back();
  }
  Node* pop() {
    Node* const node = top();
    if (node->kind == Node::kMark) refuse("a mark lies where a value should; the pickle is damaged");
    stack_.pop_back();
    return node;
  }
  std::vector<Node*> pop_to_mark() {
    std::size_t begin = stack_.size();
    while (begin > 0 && stack_[begin - 1]->kind != Node::kMark) --begin;
    if (begin == 0) refuse("there is no mark; the pickle is damaged");
    std::vector<Node*> items(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin - 1);
    return items;
  }

  void remember(std::uint64_t place) { memo_[place] = top(); }
  void recall(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) refuse("the memo has no entry " + std::to_string(place));
    stack_.push_back(found->second);
  }

  bool marks_and_memo(unsigned char code) {
    switch (code) {
      case 0x80:
        take(1);
        return true;  // protocol
      case 0x95:
        take(8);
        return true;  // frame
      case '(':
        push(Node::kMark);
        return true;
      case '0':
        pop();
        return true;
      case 'q':
        remember(number<std::uint8_t>());
        return true;
      case 'r':
        remember(number<std::uint32_t>());
        return true;
      case 0x94:
        remember(memo_.size());
        return true;
      case 'h':
        recall(number<std::uint8_t>());
        return true;
      case 'j':
        recall(number<std::uint32_t>());
        return true;
      default:
        return false;
    }
  }

  bool constant(unsigned char code) {
    switch (code) {
      case 'N':
        push(Node::kNone);
        return true;
      case 0x88:
        push_int(1);
        return true;
      case 0x89:
        push_int(0);
        return true;
      case 'J':
        push_int(number<std::int32_t>());
        return true;
      case 'K':
        push_int(number<std::uint8_t>());
        return true;
      case 'M':
        push_int(number<std::uint16_t>());
        return true;
      case 0x8a:
        push_long(take(number<std::uint8_t>()));
        return true;
      case 0x8b:
        push_long(take(number<std::uint32_t>()));
        return true;
      case 'G':
        push_float();
        return true;
      case 'X':
      case 'T':
      case 'B':
        push_text(take(number<std::uint32_t>()));
        return true;
      case 0x8c:
      case 'U':
      case 'C':
        push_text(take(number<std::uint8_t>()));
        return true;
      case 0x8d:
      case 0x8e:
      case 0x96:
        push_text(take(number<std::uint64_t>()));
        return true;
      default:
        return false;
    }
  }

  void push_long(std::string_view bytes) {
    std::int64_t value = !bytes.empty() && (bytes.back() & 0x80) != 0 ? -1 : 0;
    if (bytes.size() > sizeof(value)) return push_other("a number of more than 64 bits");
    std::memcpy(&value, bytes.data(), bytes.size());
    push_int(value);
  }

  void push_float() {
    std::uint64_t bits = 0;
    for (const char byte : take(sizeof(bits))) bits = bits << 8 | static_cast<unsigned char>(byte);
    push(Node::kFloat)->number = std::bit_cast<double>(bits);
  }

  bool container(unsigned char code) {
    switch (code) {
      case ')':
      case ']':
        push(Node::kList);
        return true;
      case '}':
        push(Node::kDict);
        return true;
      case 0x8f:
        push_other("a set");
        return true;
      case 0x90:
        pop_to_mark();
        return true;
      case 0x91:
        pop_to_mark();
        push_other("a set");
        return true;
      case 't':
      case 'l':
        make_list(pop_to_mark());
        return true;
      case 0x85:
        make_list(pop_some(1));
        return true;
      case 0x86:
        make_list(pop_some(2));
        return true;
      case 0x87:
        make_list(pop_some(3));
        return true;
      case 'a':
        append(Node::kList, pop_some(1));
        return true;
      case 'e':
        append(Node::kList, pop_to_mark());
        return true;
      case 's':
        append(Node::kDict, pop_some(2));
        return true;
      case 'u':
        append(Node::kDict, pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  std::vector<Node*> pop_some(std::size_t count) {
    std::vector<Node*> items(count);
    while (count > 0) items[--count] = pop();
    return items;
  }
  void make_list(std::vector<Node*> items) { push(Node::kList)->items = std::move(items); }
  void append(Node::Kind kind, const std::vector<Node*>& items) {
    Node* const to = top();
    if (to->kind == Node::kOther) return;
    if (to->kind != kind || (kind == Node::kDict && items.size() % 2 != 0))
      refuse("items are added to a value that cannot hold them");
    to->items.insert(to->items.end(), items.begin(), items.end());
  }

  void call(unsigned char code) {
    if (plain_) {
      refuse("opcode " + std::to_string(code) +
             " does not make a plain value of protocols 2 to 5: it may import or call something");
    }
    switch (code) {
      case 'c': {
        const std::string module = line();
        push_global(module + "." + line());
        return;
      }
      case 0x93: {
        const auto names = pop_some(2);
        if (names[0]->kind != Node::kText || names[1]->kind != Node::kText)
          refuse("the name of a class is not a string");
        count_copy(names[0]->text.size() + names[1]->text.size());
        push_global(names[0]->text + "." + names[1]->text);
        return;
      }
      case 'R':
        reduce();
        return;
      case 'Q':
        persistent();
        return;
      case 'b': {
        Node* const state = pop();  // attributes of an object, such as the _metadata of state dicts
        if (top()->kind == Node::kOther) top()->items = {state};
        return;
      }
      case 0x81:
        push_other(pop_some(2)[0]->text);
        return;
      case 0x92:
        push_other(pop_some(3)[0]->text);
        return;
      case 'o': {
        const auto parts = pop_to_mark();
        push_other(parts.empty() ? "" : parts[0]->text);
        return;
      }
      case 'i': {
        const std::string module = line();
        const std::string name = line();
        pop_to_mark();
        push_other(module + "." + name);
        return;
      }
      default:
        refuse("opcode " + std::to_string(code) + " does not belong to a state dict that torch.save() wrote");
    }
  }

  void reduce() {
    const auto parts = pop_some(2);
    const Node &callee = *parts[0], &arguments = *parts[1];
    const auto& name = callee.text;
    if (callee.kind != Node::kGlobal || arguments.kind != Node::kList) {
      push_other(name);
    } else if (name == "collections.OrderedDict") {
      ordered_dict(arguments);
    } else if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor_v3") {
      tensor(arguments);
    } else if (name.starts_with("torch._utils._rebuild_parameter")) {
      stack_.push_back(argument(arguments, 0, Node::kTensor));
    } else if (name == "torch.Size") {
      stack_.push_back(argument(arguments, 0, Node::kList));
    } else {
      push_other(name);
    }
  }

  Node* argument(const Node& arguments, std::size_t index, Node::Kind kind) const {
    if (index >= arguments.items.size() || arguments.items[index]->kind != kind) {
      refuse("argument " + std::to_string(index) + " is missing or of another type");
    }
    return arguments.items[index];
  }

  void ordered_dict(const Node& arguments) {
    Node* const made = make(Node::kDict);
    if (!arguments.items.empty()) {
      for (const auto* pair : argument(arguments, 0, Node::kList)->items) {
        if (pair->kind != Node::kList || pair->items.size() != 2) refuse("an item of an OrderedDict is not a pair");
        count_copy(2 * sizeof(Node*));
        made->items.insert(made->items.end(), pair->items.begin(), pair->items.end());
      }
    }
    stack_.push_back(made);
  }

  std::vector<std::int64_t> integers(const Node& list) {
    count_copy(list.items.size() * sizeof(std::int64_t));
    std::vector<std::int64_t> values;
    for (const auto* item : list.items) {
      if (item->kind != Node::kInt || item->integer < 0) refuse("a size or stride is not an integer of at least 0");
      values.push_back(item->integer);
    }
    return values;
  }

  // Arguments: storage, offset, size, stride, requires_grad, backward hooks, and in version 3 the dtype of an untyped
  // storage.
  void tensor(const Node& arguments) {
    const auto& storage = *argument(arguments, 0, Node::kStorage)->tensor;
    const auto& type = arguments.items.size() > 6 ? argument(arguments, 6, Node::kGlobal)->text : storage.type;
    count_copy(storage.storage.size() + type.size());
    stack_.push_back(make_view(Node::kTensor, {.type = type,
                                               .shape = integers(*argument(arguments, 2, Node::kList)),
                                               .strides = integers(*argument(arguments, 3, Node::kList)),
                                               .offset = argument(arguments, 1, Node::kInt)->integer,
                                               .storage = storage.storage,
                                               .storage_numel = storage.storage_numel}));
  }

  // Reads the id ("storage", type, key, location, elements).
  void persistent() {
    const Node& id = *pop();
    if (id.kind != Node::kList || argument(id, 0, Node::kText)->text != "storage")
      refuse("a persistent id does not refer to a storage");
    const auto& type = argument(id, 1, Node::kGlobal)->text;
    const auto& key = argument(id, 2, Node::kText)->text;
    const auto numel = argument(id, 4, Node::kInt)->integer;
    if (numel < 0) refuse("a storage has " + std::to_string(numel) + " elements");
    count_copy(type.size() + key.size());
    stack_.push_back(make_view(Node::kStorage, {.type = type, .storage = key, .storage_numel = numel}));
  }

  const std::string& file_;
  std::string_view pickle_;
  const bool plain_;
  std::size_t at_ = 0, begin_ = 0;
  std::uint64_t copied_ = 0;  // bytes
  std::deque<Node> nodes_;    // all values in one list, so that nesting costs no stack
  std::vector<Node*> stack_;
  std::map<std::uint64_t, Node*> memo_;
};

}  // namespace

Unpickled unpickle(const std::string& file, std::string_view pickle) { return Unpickler(file, pickle, false).run(); }

Unpickled unpickle_plain(const std::string& file, std::string_view pickle) {
  return Unpickler(file, pickle, true).run();
}

}  // namespace phalanx
