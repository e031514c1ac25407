// SPDX-License-Identifier: Apache-2.0
#include "framework/base/config/loading_visitor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "framework/base/config/keys.h"
#include "framework/base/config/limits.h"
#include "framework/base/config/suggest.h"
#include "framework/base/log.h"
#include "framework/base/text.h"

namespace phalanx::config {
namespace {

// Returns the names in the selection that have this key.
std::vector<std::string> names_with(const Selection& selection, const std::string& key) {
  std::vector<std::string> names;
  for (const auto& name : selection.names()) {
    if (std::ranges::count(keys_of(selection, name), key) > 0) names.push_back(name);
  }
  return names;
}

// A longer list of names in an error would not be read.
constexpr std::size_t kMaxNames = 20;

// A text with more unknown keys than this is no mistyped config. Finding out what each key was meant to be would take
// minutes.
constexpr int kMaxExplained = 100;

// `path` is the path of the selection or of its name.
std::string known_names(const Selection& selection, std::string path) {
  const auto names = selection.names();
  if (names.empty()) return "; nothing is registered here";
  if (names.size() <= kMaxNames) return "; known: " + join(names, ", ");
  if (path.ends_with(".name")) path.erase(path.rfind('.'));
  return "; train --help_config=" + path.substr(path.rfind('.') + 1) + " lists the known names";
}

// Turns {sgd: {lr: 0.1}}, and a section whose kind follows from one of its keys, into {name: ..., ...}. Other sections
// stay as they are.
Node with_name(const Node& node, const Selection& selection) {
  if (node.kind != Node::Kind::kMap || find(node, "name")) return node;
  Node named = node;
  const auto add_name = [&named](const std::string& name, const SourceLocation& location) {
    named.entries.push_back({"name", location, {.kind = Node::Kind::kScalar, .location = location, .text = name}});
  };
  for (const auto& [key, location, value] : node.entries) {
    if (const auto told = selection.name_implied_by(key); !told.empty()) {
      add_name(told, location);
      return named;
    }
  }
  if (node.entries.size() != 1) return node;
  const auto& [key, location, value] = node.entries.front();
  const bool section = value.kind == Node::Kind::kMap || value.kind == Node::Kind::kNull;
  if (!section || find(value, "name") || std::ranges::count(selection.names(), key) == 0) return node;
  named.entries = value.entries;
  add_name(key, location);
  return named;
}

ConfigProblem problem_at(const SourceLocation& location, const std::string& path, const ValueProblem& complaint) {
  return {.origin = location.origin,
          .line = location.line,
          .column = location.column,
          .key = path,
          .message = complaint.message,
          .suggestion = complaint.suggestion};
}

// Values that a flag sets have no line.
bool is_from_flag(const SourceLocation& location) { return location.line == 0; }

}  // namespace

LoadingVisitor::LoadingVisitor(const Node& root) : root_location_{root.location.origin}, frames_{{.node = &root}} {}

std::vector<ConfigProblem> LoadingVisitor::finish() {
  close();
  // A key that resembles none in its section may belong to another section: a wrong indentation.
  for (const auto& [problem, key] : unknown_) {
    problems_[problem].suggestion = suggest_path(key, paths_);
  }
  return std::move(problems_);
}

bool LoadingVisitor::enter(const Field& section) {
  const std::string path = path_to(section.key);
  const Node* node = take(section.key);
  // A null section counts as empty, because all its lines may be commented out.
  if (node && node->kind != Node::Kind::kMap && node->kind != Node::Kind::kNull) {
    report(node->location, path, {"expected a section, got " + what_is(*node)});
    return false;
  }
  frames_.push_back({.node = node, .path = path});
  return true;
}

void LoadingVisitor::leave(const Field&) { close(); }

void LoadingVisitor::visit(const Field& field, Selection& selection) {
  const std::string path = path_to(field.key);
  const Node* written = take(field.key);
  const Node named = written ? with_name(*written, selection) : Node{};
  const Node* node = written ? &named : nullptr;
  const Node* name = node;
  if (node && node->kind == Node::Kind::kMap) {
    const Node::Entry* entry = find(*node, "name");
    name = entry ? &entry->value : nullptr;
  }
  // Without a name it is unknown which other keys are wrong, so nothing is reported about them.
  if (!select(node, name, path, selection)) return;
  frames_.push_back({.node = node, .path = path, .keys = {"name"}, .selection = &selection, .name = name});
  selection.visit_selected(*this);
  close();
}

void LoadingVisitor::visit(const Field& field, SectionList& sections) {
  const std::string path = path_to(field.key);
  const Node* node = take(field.key);
  if (!node) return;
  if (node->kind != Node::Kind::kList) {
    report(node->location, path, {"expected a list of sections, [{...}], got " + what_is(*node)});
    return;
  }
  sections.reset(node->items.size());
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const Node& item = node->items[i];
    const std::string item_path = path + "[" + std::to_string(i) + "]";
    if (item.kind != Node::Kind::kMap) {
      report(item.location, item_path, {"expected a section, got " + what_is(item)});
      continue;
    }
    frames_.push_back({.node = &item, .path = item_path});
    sections.visit_item(i, *this);
    close();
  }
}

void LoadingVisitor::visit(const Field& field, SectionMap& sections) {
  const std::string path = path_to(field.key);
  const Node* node = take(field.key);
  if (!node || node->kind == Node::Kind::kNull) return;
  if (node->kind != Node::Kind::kMap) {
    report(node->location, path, {"expected sections, {key: {...}}, got " + what_is(*node)});
    return;
  }
  std::vector<std::string> keys;
  for (const auto& entry : node->entries) keys.push_back(entry.key);
  sections.reset(keys);
  for (const auto& [key, location, value] : node->entries) {
    const std::string item_path = path_of(path, key);
    if (value.kind != Node::Kind::kMap) {
      report(value.location, item_path, {"expected a section, got " + what_is(value)});
      continue;
    }
    frames_.push_back({.node = &value, .path = item_path});
    sections.visit_item(key, *this);
    close();
  }
}

void LoadingVisitor::visit(const Field& field, std::optional<double>& value) {
  const std::string path = path_to(field.key);
  const Node* node = take(field.key);
  double loaded = 0;
  if (node && accept(field, *node, path, loaded)) value = loaded;
}

void LoadingVisitor::retired(const char* key, const char* replacement) {
  Frame& frame = frames_.back();
  const Node::Entry* const entry = frame.find(key);
  if (!entry) return;
  frame.keys.emplace_back(key);
  report(entry->location, path_to(key), {"is no longer a key: write " + std::string(replacement)});
}

// A flag overrides what the file has under the other key.
void LoadingVisitor::renamed(const char* former, const char* key) {
  const std::string path = path_to(former);
  Frame& frame = frames_.back();
  const Node::Entry* const old = frame.find(former);
  if (!old) return;
  frame.keys.emplace_back(former);
  const Node::Entry* const now = frame.find(key);
  const bool former_from_flag = is_from_flag(old->value.location);
  if (now && former_from_flag == is_from_flag(now->value.location)) {
    report(old->location, path, {"is the former name of " + path_to(key) + ", which is set too; leave it out"});
    return;
  }
  const auto message = "is now called " + path_to(key) + "; use the new name";
  log_warning() << ConfigError({problem_at(old->location, path, {message})}).what();
  if (!now || former_from_flag) frame.renamed[key] = &old->value;
}

bool LoadingVisitor::select(const Node* node, const Node* name, const std::string& path, Selection& selection) {
  if (!name) {
    if (!selection.selected().empty()) return true;
    report(node ? node->location : root_location_, node ? path_of(path, "name") : path,
           {"missing" + known_names(selection, path)});
    return false;
  }
  const std::string name_path = node == name ? path : path_of(path, "name");
  if (name->kind != Node::Kind::kScalar) {
    report(name->location, name_path, {"expected a name, got " + what_is(*name) + known_names(selection, path)});
    return false;
  }
  if (std::ranges::count(selection.names(), name->text) == 0) {
    report(name->location, name_path,
           {"unknown name " + what_is(*name) + known_names(selection, path), suggest(name->text, selection.names())});
    return false;
  }
  // A name that is already selected is not selected again: the struct that holds it may have changed its defaults.
  if (selection.selected() != name->text) selection.select(name->text);
  return true;
}

template <class T>
void LoadingVisitor::load(const Field& field, T& value) {
  const std::string path = path_to(field.key);
  if (const Node* node = take(field.key)) accept(field, *node, path, value);
}

template <class T>
void LoadingVisitor::load_list(const Field& field, std::vector<T>& value) {
  const std::string path = path_to(field.key);
  const Node* node = take(field.key);
  if (!node) return;
  if (node->kind != Node::Kind::kList) {
    const bool one = node->kind == Node::Kind::kScalar;
    report(node->location, path,
           {std::string("expected a list (") + type_of(T{}) + "), got " + what_is(*node),
            one ? "[" + node->text + "]" : ""});
    return;
  }
  std::vector<T> items(node->items.size());
  bool good = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    T item{};
    good = accept(field, node->items[i], path + "[" + std::to_string(i) + "]", item) && good;
    items[i] = std::move(item);
  }
  if (good) value = std::move(items);
}

template <class T>
bool LoadingVisitor::accept(const Field& field, const Node& node, const std::string& path, T& value) {
  T loaded{};
  auto complaint = read(node, loaded);
  if (!complaint) complaint = check(field.limits, loaded);
  if (complaint) {
    report(node.location, path, *complaint);
    return false;
  }
  value = std::move(loaded);
  return true;
}

// Returns the tree's node for this key of the current section.
const Node* LoadingVisitor::take(const std::string& key) {
  Frame& frame = frames_.back();
  paths_.push_back(path_of(frame.path, key));
  frame.keys.push_back(key);
  if (const auto former = frame.renamed.find(key); former != frame.renamed.end()) return former->second;
  const Node::Entry* const entry = frame.find(key);
  return entry ? &entry->value : nullptr;
}

void LoadingVisitor::close() {
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (!frame.node) return;
  for (const auto& entry : frame.node->entries) {
    if (std::ranges::count(frame.keys, entry.key) == 0) report_unknown(frame, entry);
  }
}

void LoadingVisitor::report_unknown(const Frame& frame, const Node::Entry& entry) {
  const std::string path = path_of(frame.path, entry.key);
  if (++unknown_keys_ > kMaxExplained) return report(entry.location, path, {"unknown key"});
  if (frame.selection) {
    const auto owners = names_with(*frame.selection, entry.key);
    if (!owners.empty()) {
      const std::string& selected = frame.selection->selected();
      std::string message = "unknown key: a field of " + join(owners, ", ") + ", not of " + selected;
      if (frame.name && is_from_flag(frame.name->location) && !is_from_flag(entry.location)) {
        message += ", which " + frame.name->location.origin + " selects (--set " + frame.path + "=" + selected +
                   " drops the file's other keys)";
      }
      report(entry.location, path, {message});
      return;
    }
  }
  auto known = frame.keys;
  if (frame.selection) std::ranges::copy(frame.selection->names(), std::back_inserter(known));
  const std::string near = suggest(entry.key, known);
  if (near.empty()) unknown_.push_back({problems_.size(), entry.key});
  report(entry.location, path, {"unknown key", near});
}

void LoadingVisitor::report(const SourceLocation& location, const std::string& path, const ValueProblem& complaint) {
  problems_.push_back(problem_at(location, path, complaint));
}

}  // namespace phalanx::config
