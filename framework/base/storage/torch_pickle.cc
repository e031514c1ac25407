// The opcodes are those of Python's pickletools, protocols 0 to 5 as far as torch.save() emits them.
#include "framework/base/storage/torch_pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "framework/base/checked_product.h"
#include "framework/base/error.h"
#include "framework/base/log.h"

namespace phalanx {
namespace {

struct StorageType {
  const char* name;
  at::ScalarType dtype;
};
constexpr std::array<StorageType, 10> kStorages{{{"FloatStorage", at::kFloat},
                                                 {"DoubleStorage", at::kDouble},
                                                 {"HalfStorage", at::kHalf},
                                                 {"BFloat16Storage", at::kBFloat16},
                                                 {"LongStorage", at::kLong},
                                                 {"IntStorage", at::kInt},
                                                 {"ShortStorage", at::kShort},
                                                 {"CharStorage", at::kChar},
                                                 {"ByteStorage", at::kByte},
                                                 {"BoolStorage", at::kBool}}};

struct Node {
  enum Kind { kMark, kNone, kInt, kFloat, kText, kList, kDict, kGlobal, kStorage, kTensor, kOther };
  Kind kind = kNone;
  std::int64_t integer = 0;
  std::string text{};          // of kGlobal: module and name
  std::vector<Node*> items{};  // of kDict: keys and values by turns
  PickledTensor tensor{};
};

class Unpickler {
 public:
  Unpickler(const std::string& file, std::string_view pickle) : file_(file), pickle_(pickle) {}

  const Node& run() {
    while (true) {
      begin_ = at_;
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') break;
      if (!marks_and_memo(code) && !constant(code) && !container(code)) call(code);
    }
    return *pop();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw DataError(file_ + ": data.pkl, byte " + std::to_string(begin_) + ": " + why);
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

  Node* make(Node::Kind kind) {
    nodes_.push_back({.kind = kind});
    return &nodes_.back();
  }
  Node* push(Node::Kind kind) {
    stack_.push_back(make(kind));
    return stack_.back();
  }
  void push_text(std::string_view text) { push(Node::kText)->text = text; }
  void push_int(std::int64_t value) { push(Node::kInt)->integer = value; }

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
    if (found == memo_.end()) refuse("nothing was remembered as " + std::to_string(place));
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
        push_int(long_number());
        return true;
      case 'G':
        take(8), push(Node::kFloat);
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
        push_text(take(number<std::uint64_t>()));
        return true;
      default:
        return false;
    }
  }

  std::int64_t long_number() {
    const auto bytes = take(number<std::uint8_t>());
    if (bytes.size() > 8) refuse("a number has more than 64 bits");
    std::int64_t value = !bytes.empty() && (bytes.back() & 0x80) != 0 ? -1 : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
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
    if (to->kind != kind || (kind == Node::kDict && items.size() % 2 != 0)) refuse("items are added to what has none");
    to->items.insert(to->items.end(), items.begin(), items.end());
  }

  void call(unsigned char code) {
    switch (code) {
      case 'c': {
        const std::string module = line();
        push_global(module + "." + line());
        return;
      }
      case 0x93: {
        const auto names = pop_some(2);
        push_global(names[0]->text + "." + names[1]->text);
        return;
      }
      case 'R':
        reduce();
        return;
      case 'Q':
        persistent();
        return;
      case 'b':
        pop();
        return;  // attributes of an OrderedDict, such as the _metadata of state dicts
      case 0x81:
      case 0x92:
      case 'o':
      case 'i':
        refuse("wants to make an object of a class, which a state dict does not need");
      default:
        refuse("opcode " + std::to_string(code) + " is none that torch.save() writes for a state dict");
    }
  }

  static std::optional<at::ScalarType> storage_type(const std::string& name) {
    for (const auto& type : kStorages) {
      if (name == std::string("torch.") + type.name) return type.dtype;
    }
    return std::nullopt;
  }

  // Names alone, of what reduce() knows.
  void push_global(std::string name) {
    static const std::array<const char*, 6> known{"collections.OrderedDict",
                                                  "torch._utils._rebuild_tensor_v2",
                                                  "torch._utils._rebuild_parameter",
                                                  "torch._utils._rebuild_parameter_with_state",
                                                  "torch.Size",
                                                  "torch.device"};
    bool allowed = storage_type(name).has_value();
    for (const char* one : known) allowed |= name == one;
    if (!allowed) {
      refuse("wants " + name +
             ", which would run code or is no part of a state dict, and was not executed; save model.state_dict() "
             "alone, or as .safetensors");
    }
    push(Node::kGlobal)->text = std::move(name);
  }

  void reduce() {
    const auto parts = pop_some(2);
    const Node &callee = *parts[0], &arguments = *parts[1];
    if (callee.kind != Node::kGlobal || arguments.kind != Node::kList) refuse("calls what is no function");
    const auto& name = callee.text;
    if (name == "collections.OrderedDict") {
      ordered_dict(arguments);
    } else if (name == "torch._utils._rebuild_tensor_v2") {
      tensor(arguments);
    } else if (name.starts_with("torch._utils._rebuild_parameter")) {
      stack_.push_back(argument(arguments, 0, Node::kTensor));
    } else if (name == "torch.Size") {
      stack_.push_back(argument(arguments, 0, Node::kList));
    } else if (name == "torch.device") {
      push(Node::kOther);
    } else {
      refuse("calls " + name + ", which is no function");
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
        if (pair->kind != Node::kList || pair->items.size() != 2) refuse("an OrderedDict has what is no pair");
        made->items.insert(made->items.end(), pair->items.begin(), pair->items.end());
      }
    }
    stack_.push_back(made);
  }

  std::vector<std::int64_t> integers(const Node& list) const {
    std::vector<std::int64_t> values;
    for (const auto* item : list.items) {
      if (item->kind != Node::kInt || item->integer < 0) refuse("a size or stride is no number from 0 on");
      values.push_back(item->integer);
    }
    return values;
  }

  // storage, offset, size, stride, requires_grad, backward hooks
  void tensor(const Node& arguments) {
    Node* const made = make(Node::kTensor);
    made->tensor = argument(arguments, 0, Node::kStorage)->tensor;
    auto& tensor = made->tensor;
    tensor.offset = argument(arguments, 1, Node::kInt)->integer;
    tensor.shape = integers(*argument(arguments, 2, Node::kList));
    tensor.strides = integers(*argument(arguments, 3, Node::kList));
    stack_.push_back(made);
  }

  // ("storage", type, key, location, elements)
  void persistent() {
    const Node& id = *pop();
    if (id.kind != Node::kList || argument(id, 0, Node::kText)->text != "storage")
      refuse("refers to what is no storage");
    const auto& type = argument(id, 1, Node::kGlobal)->text;
    const auto dtype = storage_type(type);
    if (!dtype) refuse(type + " is no storage");
    const auto& key = argument(id, 2, Node::kText)->text;
    const auto numel = argument(id, 4, Node::kInt)->integer;
    if (numel < 0) refuse("a storage has " + std::to_string(numel) + " elements");
    Node* const made = push(Node::kStorage);
    made->tensor.dtype = *dtype;
    made->tensor.storage = key;
    made->tensor.storage_numel = numel;
  }

  const std::string& file_;
  std::string_view pickle_;
  std::size_t at_ = 0, begin_ = 0;
  std::deque<Node> nodes_;  // all that there are, so that nesting costs no stack
  std::vector<Node*> stack_;
  std::map<std::uint64_t, Node*> memo_;
};

const Node* value_of(const Node& dict, std::string_view key) {
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    if (dict.items[i]->kind == Node::kText && dict.items[i]->text == key) return dict.items[i + 1];
  }
  return nullptr;
}

const Node& find_state_dict(const std::string& file, const Node& root) {
  if (root.kind != Node::kDict) {
    throw DataError(file + ": holds " + (root.kind == Node::kTensor ? "one tensor" : "something else") +
                    ", and no dictionary of tensors; save model.state_dict()");
  }
  for (const char* key : {"state_dict", "model_state_dict", "model"}) {
    const Node* const inner = value_of(root, key);
    if (inner != nullptr && inner->kind == Node::kDict) return *inner;
  }
  return root;
}

// A view reads the elements of its storage and no others, and it has no more elements than the storage.
void check_view(const std::string& file, const PickledTensor& tensor) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(file + ": data.pkl: tensor " + tensor.name + " " + why);
  };
  const auto numel = checked_product(tensor.shape);
  if (!numel) refuse("has more elements than can be counted");
  const std::string storage = "a storage of " + std::to_string(tensor.storage_numel) + " elements";
  if (*numel > tensor.storage_numel) {
    refuse("has " + std::to_string(*numel) + " elements, which repeat those of " + storage +
           "; save a contiguous copy of it");
  }
  bool fits = tensor.shape.size() == tensor.strides.size() && tensor.offset >= 0;
  std::int64_t last = tensor.offset;
  for (std::size_t i = 0; fits && i < tensor.shape.size(); ++i) {
    std::int64_t way = 0;
    fits = !__builtin_mul_overflow(std::max<std::int64_t>(tensor.shape[i] - 1, 0), tensor.strides[i], &way) &&
           !__builtin_add_overflow(last, way, &last);
  }
  if (!fits || (*numel > 0 && last >= tensor.storage_numel)) refuse("lies outside of its " + storage.substr(2));
}

void append_text(std::string& to, const std::string& text) {
  to += 'X';
  const auto bytes = static_cast<std::uint32_t>(text.size());
  to.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  to += text;
}

void append_number(std::string& to, std::int64_t value) {
  to += "\x8a\x08";  // a number of 8 bytes
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_tuple(std::string& to, const std::vector<std::int64_t>& values) {
  to += '(';
  for (const auto value : values) append_number(to, value);
  to += 't';
}

const char* storage_name(const PickledTensor& tensor) {
  for (const auto& type : kStorages) {
    if (type.dtype == tensor.dtype) return type.name;
  }
  throw DataError("tensor " + tensor.name + " has dtype " + c10::toString(tensor.dtype) +
                  ", which a .pt file cannot hold");
}

}  // namespace

std::vector<PickledTensor> unpickle_state_dict(const std::string& file, std::string_view pickle) {
  Unpickler unpickler(file, pickle);
  const Node& dict = find_state_dict(file, unpickler.run());
  std::vector<PickledTensor> tensors;
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Node &key = *dict.items[i], &value = *dict.items[i + 1];
    if (key.kind != Node::kText) throw DataError(file + ": the state dict has a key that is no text");
    if (key.text.ends_with("_extra_state")) {
      log_info() << file << ": " << key.text << " is left out";
    } else if (value.kind != Node::kTensor) {
      throw DataError(file + ": " + key.text +
                      " is no tensor; save model.state_dict() alone, or as {\"state_dict\": ...}");
    } else {
      tensors.push_back(value.tensor);
      tensors.back().name = key.text;
      check_view(file, tensors.back());
    }
  }
  return tensors;
}

std::string pickle_state_dict(const std::vector<PickledTensor>& tensors) {
  std::string text =
      "\x80\x02"
      "ccollections\nOrderedDict\n)R(";
  std::size_t index = 0;
  for (const auto& tensor : tensors) {
    std::vector<std::int64_t> strides(tensor.shape.size());
    std::int64_t numel = 1, step = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      strides[i] = step;
      step *= std::max<std::int64_t>(tensor.shape[i], 1);
      numel *= tensor.shape[i];
    }
    append_text(text, tensor.name);
    text += "ctorch._utils\n_rebuild_tensor_v2\n((";
    append_text(text, "storage");
    text += std::string("ctorch\n") + storage_name(tensor) + "\n";
    append_text(text, std::to_string(index++));
    append_text(text, "cpu");
    append_number(text, numel);
    text += "tQ";
    append_number(text, 0);
    append_tuple(text, tensor.shape);
    append_tuple(text, strides);
    text +=
        "\x89"
        "ccollections\nOrderedDict\n)RtR";
  }
  return text + "u.";
}

}  // namespace phalanx
