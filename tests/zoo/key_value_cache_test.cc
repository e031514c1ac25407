// SPDX-License-Identifier: Apache-2.0
// Tests the key-value caches of all models that have one.
#include "models/key_value_cache.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "models/incremental_decoding.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using testing::fill;
using testing::make_model;

constexpr const char* kWithCaches[] = {"{name: llama, layers: 2, heads: 4, key_value_heads: 2, width: 16}",
                                       "{name: gpt, layers: 2, heads: 2, width: 8}",
                                       "{name: gpt, layers: 2, heads: 2, width: 8, attention: explicit}",
                                       "{name: moe_gpt, layers: 2, heads: 2, width: 8, experts: 2, balance: 0}"};

TEST(KeyValueCaches, ContinueAsIfAllHadBeenComputedAtOnce) {
  const at::NoGradGuard no_grad;
  for (const auto* section : kWithCaches) {
    const auto model = make_model(section, language_samples(6, 11));
    model->eval();
    const at::Tensor whole = model->forward(testing::some_text());
    KeyValueCache cache(6);
    auto* const decoding = as<IncrementalDecoding>(*model);
    ASSERT_NE(decoding, nullptr) << section;
    decoding->use_kv_cache(&cache);
    std::vector<at::Tensor> parts;
    for (const auto& [begin, count] : {std::pair(0, 2), std::pair(2, 1), std::pair(3, 3)}) {
      EXPECT_EQ(cache.length(), begin);
      parts.push_back(model->forward(testing::some_text().narrow(1, begin, count)));
    }
    EXPECT_TRUE(at::allclose(at::concat(parts, 1), whole, 1e-5, 1e-6)) << section;
    EXPECT_ANY_THROW(model->forward(testing::some_text().narrow(1, 0, 1))) << "the context is full";
    decoding->use_kv_cache(nullptr);
    EXPECT_TRUE(at::allclose(model->forward(testing::some_text()), whole, 1e-5, 1e-6)) << section;
  }
  EXPECT_EQ(as<IncrementalDecoding>(*make_model("mlp", classification_samples({1, 8, 8}, 10))), nullptr);
}

// The capacity of experts is a share of the tokens that are computed at once, so a single token is never dropped.
TEST(KeyValueCaches, NeverDropASingleTokenOfExpertsWithLittleCapacity) {
  const at::NoGradGuard no_grad;
  const std::string section = "{name: moe_gpt, layers: 1, heads: 2, width: 8, experts: 2, balance: 0, ";
  const auto model = make_model(section + "capacity_factor: 0.34}", language_samples(6, 11));
  const auto unlimited = make_model(section + "capacity_factor: 0}", language_samples(6, 11));
  for (const auto& one : {model, unlimited}) {
    fill(*one);
    one->eval();
  }
  const at::Tensor text = testing::some_text().narrow(0, 0, 1), wanted = unlimited->forward(text);
  EXPECT_FALSE(at::allclose(model->forward(text), wanted, 1e-5, 1e-6));
  KeyValueCache cache(6);
  as<IncrementalDecoding>(*model)->use_kv_cache(&cache);
  std::vector<at::Tensor> parts;
  for (std::int64_t i = 0; i < 6; ++i) parts.push_back(model->forward(text.narrow(1, i, 1)));
  EXPECT_TRUE(at::allclose(at::concat(parts, 1), wanted, 1e-5, 1e-6));
}

}  // namespace
}  // namespace phalanx
