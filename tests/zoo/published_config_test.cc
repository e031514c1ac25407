// SPDX-License-Identifier: Apache-2.0
// Compares Hugging Face's config.json files with our models.
#include "engine/build/published_config.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/build/initial_weights.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/weights_file.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_model;
using ::testing::ThrowsMessage;

constexpr const char* kLlama = "{name: llama, layers: 2, heads: 4, key_value_heads: 2, width: 16, hidden: 24";
constexpr const char* kLlamaSizes =
    R"("model_type": "llama", "vocab_size": 11, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048, "rms_norm_eps": 1e-05)";
constexpr const char* kLlama3 =
    R"({"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
        "rope_type": "llama3"})";

// Writes config.json into a folder, and returns the folder.
std::string config_file(const std::string& text) {
  const std::string folder = ::testing::TempDir() + "/published";
  std::filesystem::create_directories(folder);
  write_atomically(folder + "/config.json", text);
  return folder;
}

std::vector<std::string> contradictions(const std::string& section, const std::string& members,
                                        const SampleSpec& samples = language_samples(6, 11)) {
  return contradictions_of_config(config_file("{" + members + "}"), *make_model(section, samples));
}

std::vector<std::string> of_llama(const std::string& fields, const std::string& members) {
  return contradictions(kLlama + fields + "}", kLlamaSizes + members);
}

TEST(PublishedConfig, AcceptsAModelThatIsTheSame) {
  EXPECT_THAT(of_llama("", R"(, "rope_theta": 10000.0, "rope_scaling": null, "hidden_act": "silu", "head_dim": 4)"),
              IsEmpty());
  EXPECT_THAT(of_llama("", R"(, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"})"), IsEmpty());
  EXPECT_THAT(contradictions("{name: gpt, heads: 4, layers: 2, width: 16}",
                             R"("model_type": "gpt2", "n_head": 4, "n_layer": 2, "n_embd": 16, "n_positions": 6)"),
              IsEmpty());
  EXPECT_THAT(contradictions("{name: bert, heads: 4, layers: 2, width: 16, hidden: 24}",
                             R"("model_type": "bert", "num_attention_heads": 4, "intermediate_size": 24)"),
              IsEmpty());
  EXPECT_THAT(contradictions("{name: vit, patch: 4, heads: 2, width: 16}",
                             R"("model_type": "vit", "num_attention_heads": 2, "image_size": [8, 8], "patch_size": 4)",
                             classification_samples({3, 8, 8}, 5)),
              IsEmpty());
}

TEST(PublishedConfig, NamesFileKeyBothValuesAndTheKeyOfTheModel) {
  const std::string file = ::testing::TempDir() + "/published/config.json";
  EXPECT_THAT(of_llama(", epsilon: 1.0e-6", ""),
              ElementsAre(file + " has rms_norm_eps: 1e-05, but the model has 1e-06; set model.epsilon: 1e-05"));
  EXPECT_THAT(of_llama("", R"(, "hidden_act": "gelu")"),
              ElementsAre(file + R"( has hidden_act: "gelu", but the model has "silu")"));
  EXPECT_THAT(of_llama(", tied: true", ""),
              ElementsAre(file + " lacks tie_word_embeddings, which means false, but the model has true; set "
                                 "model.tied: false"));
}

TEST(PublishedConfig, ContradictsEachKeyThatAModelDoesNotComputeWith) {
  for (const std::string member :
       {R"("rope_theta": 500000.0)", R"("rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"})",
        R"("tie_word_embeddings": true)", R"("attention_bias": true)", R"("mlp_bias": true)", R"("head_dim": 8)",
        R"("sliding_window": 4)", R"("partial_rotary_factor": 0.5)", R"("hidden_act": "relu")"}) {
    EXPECT_EQ(of_llama("", ", " + member).size(), 1u) << member;
  }
  for (const std::string member :
       {R"("activation_function": "relu")", R"("layer_norm_epsilon": 1e-06)", R"("scale_attn_weights": false)",
        R"("scale_attn_by_inverse_layer_idx": true)", R"("n_inner": 100)", R"("tie_word_embeddings": false)",
        R"("n_positions": 1024)", R"("vocab_size": 12)", R"("model_type": "gptj")"}) {
    EXPECT_EQ(contradictions("{name: gpt, heads: 12, width: 24}", R"("architectures": ["A"], )" + member).size(), 1u)
        << member;
  }
  for (const std::string member : {R"("hidden_act": "gelu_new")", R"("layer_norm_eps": 1e-05)", R"("is_decoder": true)",
                                   R"("num_attention_heads": 4)", R"("position_embedding_type": "relative_key")"}) {
    EXPECT_EQ(contradictions("{name: bert, heads: 12, width: 24}", R"("architectures": ["A"], )" + member).size(), 1u)
        << member;
  }
  for (const std::string member : {R"("hidden_act": "relu")", R"("layer_norm_eps": 1e-06)", R"("qkv_bias": false)",
                                   R"("image_size": 32)", R"("num_attention_heads": 4)"}) {
    EXPECT_EQ(contradictions("{name: vit, patch: 16, heads: 12, width: 24}", R"("model_type": "vit", )" + member,
                             classification_samples({3, 224, 224}, 5))
                  .size(),
              1u)
        << member;
  }
}

TEST(PublishedConfig, AllowsMorePositionsIfTheyAreTruncated) {
  for (const auto& [section, members] : std::vector<std::pair<std::string, std::string>>{
           {"{name: gpt, heads: 2, width: 16}", R"("model_type": "gpt2", "n_head": 2, "n_positions": )"},
           {"{name: bert, heads: 2, width: 16}",
            R"("model_type": "bert", "num_attention_heads": 2, "max_position_embeddings": )"}}) {
    const auto model = make_model(section, language_samples(6, 11));
    EXPECT_THAT(contradictions_of_config(config_file("{" + members + "1024}"), *model, true), IsEmpty()) << section;
    EXPECT_EQ(contradictions_of_config(config_file("{" + members + "1024}"), *model).size(), 1u) << section;
    EXPECT_EQ(contradictions_of_config(config_file("{" + members + "5}"), *model, true).size(), 1u) << section;
  }
}

// Names as in model.state_dict() of transformers 5.
TEST(PublishedNames, LoadNewerVersionsOfVit) {
  const std::string section = "{name: vit, patch: 4, heads: 2, width: 16, layers: 12, hidden: 24}";
  const auto samples = classification_samples({3, 8, 8}, 5);
  const auto model = make_model(section, samples), other = make_model(section, samples);
  const std::vector<std::pair<std::string, std::string>> parts{{"attention.attention.query", "attention.q_proj"},
                                                               {"attention.attention.key", "attention.k_proj"},
                                                               {"attention.attention.value", "attention.v_proj"},
                                                               {"attention.output.dense", "attention.o_proj"},
                                                               {"intermediate.dense", "mlp.fc1"},
                                                               {"output.dense", "mlp.fc2"}};
  NamedTensors renamed;
  for (auto [name, tensor] : model->named_parameters()) {
    if (const auto layer = name.find("encoder.layer."); layer != std::string::npos) {
      name.replace(layer, std::string("encoder.layer.").size(), "layers.");
      for (const auto& [ours, theirs] : parts) {
        if (const auto found = name.find(ours); found != std::string::npos) {
          name.replace(found, ours.size(), theirs);
          break;
        }
      }
    }
    renamed.emplace_back(name, tensor.detach());
  }
  const std::string file = ::testing::TempDir() + "/vit.safetensors";
  save_weights(file, renamed);
  const WeightsFile weights(file);
  const auto fit = fit_weights(weights, {}, *other);
  ASSERT_EQ(fit.text(), "");
  fit.load(weights);
  const auto expected = model->named_parameters(), loaded = other->named_parameters();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::equal(expected[i].second, loaded[i].second)) << expected[i].first;
  }
}

TEST(PublishedConfig, AsksForTheStretchOfRotaryPositions) {
  const std::string scaled = std::string(R"(, "rope_scaling": )") + kLlama3;
  EXPECT_THAT(of_llama("", scaled), ElementsAre(AllOf(HasSubstr("has rope_scaling: {"), HasSubstr("\"factor\":8.0"),
                                                      HasSubstr("set model.rope_scaling to the same"))));
  const std::string same =
      ", rope_scaling: {rope_type: llama3, factor: 8, low_freq_factor: 1, high_freq_factor: 4, "
      "original_max_position_embeddings: 8192}";
  EXPECT_THAT(of_llama(same, scaled), IsEmpty());
  EXPECT_EQ(of_llama(same, "").size(), 1u) << "a file without rope_scaling";
  EXPECT_THAT(of_llama(", rope_scaling: {rope_type: linear, factor: 4}",
                       R"(, "rope_scaling": {"type": "linear", "factor": 4.0})"),
              IsEmpty());
  const std::string yarn = ", rope_scaling: {rope_type: yarn, factor: 4, original_max_position_embeddings: 2048}";
  EXPECT_THAT(of_llama(yarn, R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0})"), IsEmpty());
  EXPECT_EQ(of_llama(yarn, R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "mscale": 0.7})").size(), 1u)
      << "a key that the model does not have";
  EXPECT_EQ(of_llama("", R"(, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0})").size(), 1u);
}

TEST(PublishedConfig, IsReadOnlyIfItIsOfHuggingFaceAndTheModelReadsItsWeights) {
  EXPECT_THAT(contradictions(std::string(kLlama) + "}", R"("rms_norm_eps": 1)"), IsEmpty())
      << "the file of another model";
  EXPECT_THAT(contradictions("lstm", R"("model_type": "llama")"), IsEmpty());
  const auto model = make_model(std::string(kLlama) + "}", language_samples(6, 11));
  EXPECT_THAT(contradictions_of_config(::testing::TempDir() + "/nowhere/model.safetensors", *model), IsEmpty());
  EXPECT_THAT(contradictions_of_config(config_file(R"({"model_type": "gemma"})") + "/model.safetensors", *model),
              ElementsAre(HasSubstr("has model_type: \"gemma\""), HasSubstr("rms_norm_eps")));
  EXPECT_THAT([&] { contradictions_of_config(config_file("{"), *model); },
              ThrowsMessage<DataError>(HasSubstr("config.json")));
}

}  // namespace
}  // namespace phalanx
