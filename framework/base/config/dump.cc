// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <cmath>
#include <stdexcept>

#include "framework/base/config/config.h"
#include "framework/base/config/scalar.h"

namespace phalanx::config {
namespace {

class DumpingVisitor final : public Visitor {
 public:
  DumpingVisitor() { out_ << YAML::BeginMap; }

  std::string finish() {
    out_ << YAML::EndMap;
    if (!out_.good()) throw std::logic_error("cannot write the config as YAML: " + out_.GetLastError());
    return std::string(out_.c_str()) + "\n";
  }

 private:
  bool enter(const Field& section) override {
    out_ << YAML::Key << section.key << YAML::Value << YAML::BeginMap;
    return true;
  }
  void leave(const Field&) override { out_ << YAML::EndMap; }

  void visit(const Field& field, bool& value) override { pair(field, value); }
  void visit(const Field& field, std::int64_t& value) override { pair(field, value); }
  void visit(const Field& field, double& value) override { pair(field, value); }
  void visit(const Field& field, std::string& value) override { pair(field, value); }
  void visit(const Field& field, std::optional<double>& value) override {
    if (value) pair(field, *value);
  }
  void visit(const Field& field, std::vector<std::int64_t>& value) override { list(field, value); }
  void visit(const Field& field, std::vector<double>& value) override { list(field, value); }
  void visit(const Field& field, std::vector<std::string>& value) override { list(field, value); }

  // A selection without a name is omitted: it could not be read back, and to load() a missing section is the same.
  void visit(const Field& field, Selection& selection) override {
    if (selection.selected().empty()) return;
    enter(field);
    out_ << YAML::Key << "name" << YAML::Value;
    write(selection.selected());
    selection.visit_selected(*this);
    leave(field);
  }

  void visit(const Field& field, SectionList& sections) override {
    out_ << YAML::Key << field.key << YAML::Value;
    if (sections.size() == 0) out_ << YAML::Flow;
    out_ << YAML::BeginSeq;
    for (std::size_t i = 0; i < sections.size(); ++i) {
      out_ << YAML::Flow << YAML::BeginMap;
      sections.visit_item(i, *this);
      out_ << YAML::EndMap;
    }
    out_ << YAML::EndSeq;
  }

  void visit(const Field& field, SectionMap& sections) override {
    out_ << YAML::Key << field.key << YAML::Value << YAML::Flow << YAML::BeginMap;
    for (const auto& key : sections.keys()) {
      out_ << YAML::Key;
      write(key);
      out_ << YAML::Value << YAML::BeginMap;
      sections.visit_item(key, *this);
      out_ << YAML::EndMap;
    }
    out_ << YAML::EndMap;
  }

  template <class T>
  void pair(const Field& field, const T& value) {
    out_ << YAML::Key << field.key << YAML::Value;
    write(value);
  }

  template <class T>
  void list(const Field& field, const std::vector<T>& values) {
    out_ << YAML::Key << field.key << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const auto& value : values) write(value);
    out_ << YAML::EndSeq;
  }

  void write(bool value) { out_ << (value ? "true" : "false"); }
  void write(std::int64_t value) { out_ << std::to_string(value); }
  void write(const std::string& value) {
    if (value.find('\0') != value.npos) throw std::logic_error("a string of a config contains a NUL character");
    if (needs_quotes(value)) out_ << YAML::DoubleQuoted;
    out_ << value;
  }

  // Other readers take 1e-05 for a string and 5 for an integer, so a decimal point is added.
  void write(double value) {
    if (!std::isfinite(value)) throw std::logic_error("a number of a config is not finite");
    std::string text = shortest(value);
    if (text.find('.') == text.npos) text.insert(std::min(text.find('e'), text.size()), ".0");
    out_ << text;
  }

  YAML::Emitter out_;
};

}  // namespace

std::string dump_from(const Visit& visit) {
  DumpingVisitor dumping;
  visit(dumping);
  return dumping.finish();
}

}  // namespace phalanx::config
