// SPDX-License-Identifier: Apache-2.0
#include "tools/list/kinds.h"

#include <typeinfo>

#include "datasets/dataset.h"
#include "datasets/sample_order.h"
#include "datasets/transforms/transform.h"
#include "engine/loss/loss.h"
#include "engine/meters/meter.h"
#include "engine/optim/optimizer.h"
#include "engine/schedule/schedule.h"
#include "engine/strategies/strategies.h"
#include "engine/task/task.h"
#include "framework/collectives/compression/compressor.h"
#include "framework/comm/backend.h"
#include "framework/ps/rules/sparse_rule.h"
#include "framework/ps/rules/update_rule.h"
#include "models/embedding/embedding.h"
#include "models/model.h"

namespace phalanx {
namespace {

template <class Things>
Kind kind(const char* name, const char* what) {
  return {name, what, std::make_shared<const typename Things::Choice>()};
}

Kind models() {
  Kind all = kind<Models>("models", "networks to train");
  all.supports = [](const std::string& name) { return Models::Choice(name).traits().names(); };
  return all;
}

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      models(),
      kind<Datasets>("datasets", "data to train and test on, and ways to combine it"),
      kind<Transforms>("transforms", "changes to images before training"),
      kind<Samplers>("samplers", "orders of training samples"),
      kind<Tasks>("tasks", "what a model is trained for"),
      kind<Losses>("losses", "loss functions to minimise"),
      kind<Meters>("meters", "what is measured in tests"),
      kind<Optimizers>("optimizers", "update rules of parameters"),
      kind<Schedules>("schedules", "learning-rate schedules"),
      kind<Strategies>("strategies", "ways to train in parallel"),
      kind<Compressors>("compressions", "ways to make messages smaller"),
      kind<Backends>("backends", "ways to communicate"),
      kind<Embeddings>("embeddings", "where tables of embeddings are kept"),
      kind<ps::UpdateRules>("update_rules", "what parameter servers do with what they receive"),
      kind<ps::RowRules>("row_rules", "the same for rows of sparse tables"),
  };
  return all;
}

std::string kind_of(const config::Selection& selection) {
  for (const auto& kind : kinds()) {
    const config::Selection& one = *kind.all;
    if (typeid(one) == typeid(selection)) return kind.name;
  }
  return "";
}

}  // namespace phalanx
