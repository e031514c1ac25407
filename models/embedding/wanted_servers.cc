// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/wanted_servers.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/config/visitor.h"
#include "models/embedding/embedding.h"

namespace phalanx {
namespace {

// Visits every place of embeddings that a config chooses.
class Search final : public config::Visitor {
 public:
  bool found() const { return found_; }

 protected:
  bool enter(const config::Field&) override { return true; }
  void leave(const config::Field&) override {}
  void visit(const config::Field&, bool&) override {}
  void visit(const config::Field&, std::int64_t&) override {}
  void visit(const config::Field&, double&) override {}
  void visit(const config::Field&, std::string&) override {}
  void visit(const config::Field&, std::optional<double>&) override {}
  void visit(const config::Field&, std::vector<std::int64_t>&) override {}
  void visit(const config::Field&, std::vector<double>&) override {}
  void visit(const config::Field&, std::vector<std::string>&) override {}
  void visit(const config::Field&, config::Selection& selection) override {
    const auto* const place = dynamic_cast<const Embeddings::Choice*>(&selection);
    found_ |= place != nullptr && !place->selected().empty() && place->traits().parameter_servers;
    selection.visit_selected(*this);
  }
  void visit(const config::Field&, config::SectionList& list) override {
    for (std::size_t i = 0; i < list.size(); ++i) list.visit_item(i, *this);
  }
  void visit(const config::Field&, config::SectionMap& map) override {
    for (const auto& key : map.keys()) map.visit_item(key, *this);
  }

 private:
  bool found_ = false;
};

}  // namespace

bool wants_servers(Models::Choice model) {
  Search search;
  model.visit_selected(search);
  return search.found();
}

}  // namespace phalanx
