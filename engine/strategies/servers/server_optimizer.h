// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/optim/optimizer.h"
#include "framework/base/config/visitor.h"

namespace phalanx {

/// An option of strategies: `none`, or the optimizer that parameter servers apply to gradients. It must be an
/// elementwise optimizer, since a server has only parts of parameters, without their names.
class ServerOptimizer final : public config::Selection {
 public:
  bool any() const { return name_ != kNone; }

  /// Returns the learning rate in the optimizer's own options.
  double learning_rate() const;

  /// Returns the rule of a table, in YAML, that applies the optimizer to the mean of every `clients` gradients; see
  /// optimizer_rule.cc.
  std::string rule(double staleness_power, std::int64_t clients) const;

  std::vector<std::string> names() const override;
  std::string help(const std::string& name) const override;
  const std::string& selected() const override { return name_; }
  std::string name_implied_by(const std::string&) const override { return ""; }
  void select(const std::string& name) override;
  void visit_selected(config::Visitor& visitor) override;
  void visit_defaults(const std::string& name, config::Visitor& visitor) const override;

 private:
  static constexpr const char* kNone = "none";

  std::string name_ = kNone;
  Optimizers::Choice optimizer_;
};

}  // namespace phalanx
