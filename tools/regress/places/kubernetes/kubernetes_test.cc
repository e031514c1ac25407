// SPDX-License-Identifier: Apache-2.0
// Validates the objects that regress writes against the schemas of Kubeflow Trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tools/regress/places/kubernetes/runtime.h"
#include "tools/regress/places/kubernetes/train_job.h"

namespace phalanx::regress {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json schema_of(const std::string& kind) {
  return json::parse(read_file("third_party/kubeflow/" + kind + ".schema.json")).at("openAPIV3Schema");
}

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  return type == "integer" ? value.is_number_integer() : value.is_number();
}

// Adds the errors in the value to `problems`. As Kubernetes does, it refuses fields that the schema does not have.
void validate(const json& value, const json& schema, const std::string& path, std::vector<std::string>& problems) {
  if (schema.value("x-kubernetes-int-or-string", false) && (value.is_string() || value.is_number_integer())) return;
  const std::string type = schema.value("type", "");
  if (!type.empty() && !has_type(value, type)) {
    problems.push_back(path + ": not of type " + type);
    return;
  }
  if (schema.contains("enum") && std::ranges::count(schema["enum"], value) == 0) problems.push_back(path + ": enum");
  if (schema.contains("minimum") && value < schema["minimum"]) problems.push_back(path + ": too small");
  if (value.is_string() && schema.contains("pattern") &&
      !std::regex_search(value.get<std::string>(), std::regex(schema["pattern"].get<std::string>()))) {
    problems.push_back(path + ": pattern");
  }
  for (const auto& name : schema.value("required", json::array())) {
    if (!value.contains(name.get<std::string>()))
      problems.push_back(path + "." + name.get<std::string>() + ": missing");
  }
  if (value.is_array() && schema.contains("items")) {
    for (const auto& item : value) validate(item, schema["items"], path + "[]", problems);
  }
  const bool is_open = schema.value("x-kubernetes-preserve-unknown-fields", false);
  if (!value.is_object() || is_open || !(schema.contains("properties") || schema.contains("additionalProperties")))
    return;
  for (const auto& [name, field] : value.items()) {
    if (schema.contains("properties") && schema["properties"].contains(name)) {
      validate(field, schema["properties"][name], path + "." + name, problems);
    } else if (schema.contains("additionalProperties")) {
      validate(field, schema["additionalProperties"], path + "." + name, problems);
    } else {
      problems.push_back(path + "." + name + ": unknown field");
    }
  }
}

std::vector<std::string> problems_of(const json& object, const std::string& kind) {
  std::vector<std::string> problems;
  validate(object, schema_of(kind), "", problems);
  return problems;
}

json to_json(const YAML::Node& node) {
  if (node.IsNull()) return nullptr;
  if (node.IsScalar()) {
    std::int64_t number = 0;
    bool flag = false;
    if (node.Tag() != "!" && YAML::convert<std::int64_t>::decode(node, number)) return number;
    if (node.Tag() != "!" && YAML::convert<bool>::decode(node, flag)) return flag;
    return node.Scalar();
  }
  json value = node.IsSequence() ? json::array() : json::object();
  if (node.IsSequence()) {
    for (const auto& item : node) value.push_back(to_json(item));
  } else {
    for (const auto& entry : node) value[entry.first.Scalar()] = to_json(entry.second);
  }
  return value;
}

std::vector<json> runtimes() {
  std::vector<json> all;
  for (const auto& document : YAML::LoadAll(kRuntimes)) {
    if (!document.IsNull()) all.push_back(to_json(document));
  }
  return all;
}

Job job(const std::string& name, int ranks = 1, int hosts = 1) {
  return {.name = name,
          .command = {"/home/me/bazel-bin/tools/phalanx", "train", "/shared/a.yaml"},
          .ranks = ranks,
          .hosts = hosts,
          .folder = "/shared/runs/" + name};
}

json object_of(const Job& one) { return json::parse(train_job(one, "/out")); }

TEST(Validation, RefusesWhatKubernetesWouldRefuse) {
  auto object = object_of(job("a"));
  object["spec"]["trainer"]["numNodes"] = "two";
  object["spec"]["trainer"]["nodes"] = 2;
  object["spec"].erase("runtimeRef");
  EXPECT_THAT(problems_of(object, "trainjobs"),
              testing::UnorderedElementsAre(".spec.runtimeRef: missing", ".spec.trainer.nodes: unknown field",
                                            ".spec.trainer.numNodes: not of type integer"));
}

TEST(TrainJob, IsValid) {
  auto limited = job("limited", 4, 2);
  limited.time_limit = 0.5;
  for (const auto& one : {job("a"), job("b", 2), limited}) {
    EXPECT_THAT(problems_of(object_of(one), "trainjobs"), IsEmpty());
  }
}

TEST(TrainJob, HasANameThatKubernetesPermits) {
  const std::regex permitted("^[a-z]([-a-z0-9]*[a-z0-9])?$");  // a rule of the schema, in another language
  std::set<std::string> names;
  for (const std::string& name : {std::string("a"), std::string("A"), std::string("1 x/Y_z"), std::string(200, 'q')}) {
    const auto made = kubernetes_name(job(name), "/out");
    EXPECT_TRUE(std::regex_match(made, permitted)) << made;
    EXPECT_LE(made.size(), 50u) << "pods have longer names than their TrainJob";
    names.insert(made);
  }
  EXPECT_EQ(names.size(), 4u);
  EXPECT_NE(kubernetes_name(job("a"), "/out"), kubernetes_name(job("a"), "/other"));
}

TEST(TrainJob, OfOneHostStartsItsOwnRanks) {
  const auto spec = object_of(job("a", 4))["spec"];
  EXPECT_EQ(spec["runtimeRef"]["name"], "phalanx-torch");
  EXPECT_EQ(spec["trainer"]["numNodes"], 1);
  EXPECT_EQ(spec["trainer"]["resourcesPerNode"]["requests"]["cpu"], "4");
  const std::vector<std::string> command = spec["trainer"]["command"];
  EXPECT_THAT(std::vector(command.begin() + 3, command.end()),
              ElementsAre("/shared/runs/a", "phalanx", "train", "/shared/a.yaml"));
}

TEST(TrainJob, OfSeveralHostsCallsMpirun) {
  const auto spec = object_of(job("a", 4, 2))["spec"];
  EXPECT_EQ(spec["runtimeRef"]["name"], "phalanx-mpi");
  EXPECT_EQ(spec["trainer"]["numNodes"], 2);
  EXPECT_EQ(spec["trainer"]["numProcPerNode"], 2);
  EXPECT_EQ(spec["trainer"]["command"].back(), "--set=launch.with=mpi");
}

TEST(TrainJob, HasItsTimeLimit) {
  EXPECT_FALSE(object_of(job("a"))["spec"].contains("activeDeadlineSeconds"));
  auto limited = job("a");
  limited.time_limit = 59.5;
  EXPECT_EQ(object_of(limited)["spec"]["activeDeadlineSeconds"], 60);
}

TEST(Runtimes, AreValid) {
  ASSERT_EQ(runtimes().size(), 2u);
  for (const auto& runtime : runtimes()) EXPECT_THAT(problems_of(runtime, "trainingruntimes"), IsEmpty());
}

TEST(Runtimes, HaveTheNamesAndThePoliciesThatTrainJobsRelyOn) {
  const auto all = runtimes();
  EXPECT_EQ(all[0]["metadata"]["name"], "phalanx-torch");
  EXPECT_EQ(all[1]["metadata"]["name"], "phalanx-mpi");
  EXPECT_TRUE(all[0]["spec"]["mlPolicy"].contains("torch"));
  EXPECT_TRUE(all[1]["spec"]["mlPolicy"].contains("mpi"));
  for (const auto& runtime : all) {
    const auto& policy = runtime["spec"]["mlPolicy"];
    EXPECT_EQ(policy.contains("torch") + policy.contains("mpi"), 1) << "a rule of the schema: one source of a policy";
  }
}

constexpr const char* kTrainJobs = R"({"items": [
  {"metadata": {"name": "new"}},
  {"metadata": {"name": "good"}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}},
  {"metadata": {"name": "late"}, "status": {"conditions": [
    {"type": "Suspended", "status": "False"},
    {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "took too long"}]}}]})";

TEST(TrainJobState, IsReadFromItsConditions) {
  EXPECT_FALSE(find_state(kTrainJobs, "other"));
  EXPECT_FALSE(find_state(kTrainJobs, "new")->complete);
  EXPECT_FALSE(find_state(kTrainJobs, "new")->failed);
  EXPECT_TRUE(find_state(kTrainJobs, "good")->complete);
  EXPECT_TRUE(find_state(kTrainJobs, "late")->failed);
  EXPECT_EQ(find_state(kTrainJobs, "late")->reason, "DeadlineExceeded");
  EXPECT_THROW(find_state("error: no", "a"), DataError);
}

TEST(ExitStatus, IsThatOfAContainerThatWasNotEvicted) {
  const std::string failed = R"({"status": {"containerStatuses": [{"state": {"terminated": {"exitCode": 4}}}]}})";
  const std::string evicted = R"({"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}],
                                             "containerStatuses": [{"state": {"terminated": {"exitCode": 137}}}]}})";
  const std::string running = R"({"status": {"containerStatuses": [{"state": {"running": {}}}]}})";
  EXPECT_EQ(find_exit_status("{\"items\": [" + running + "," + evicted + "," + failed + "]}"), 4);
  EXPECT_EQ(find_exit_status("{\"items\": [" + running + "," + evicted + "]}"), std::nullopt);
}

TEST(Dockerfile, BuildsWithBazelw) {
  const auto text = read_file("tools/regress/places/kubernetes/Dockerfile");
  EXPECT_THAT(text, HasSubstr("RUN ./bazelw build //tools:phalanx //tools:train"));
  EXPECT_THAT(text, HasSubstr("openssh-server")) << "the policy mpi needs it";
}

}  // namespace
}  // namespace phalanx::regress
