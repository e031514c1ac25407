// SPDX-License-Identifier: Apache-2.0
// Predicts training steps on a hypothetical cluster: simulate tools/simulate/gpt_cluster.yaml

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/simulate/curves.h"
#include "tools/simulate/step.h"
#include "tools/simulate/validation.h"

namespace phalanx {
namespace {

using simulate::Scenario;
using simulate::Step;

constexpr std::size_t kShown = 10;  // meshes that a search prints

std::string mesh_text(const simulate::ScenarioMesh& mesh) {
  return format_text("data %ld, pipe %ld, tensor %ld, expert %ld, context %ld", static_cast<long>(mesh.data),
                     static_cast<long>(mesh.pipe), static_cast<long>(mesh.tensor), static_cast<long>(mesh.expert),
                     static_cast<long>(mesh.context));
}

void print(const Step& step, const Scenario& scenario) {
  std::printf("%s on %lld ranks: %s\n", scenario.model.name.c_str(), static_cast<long long>(scenario.ranks()),
              mesh_text(step.mesh).c_str());
  const std::pair<const char*, double> parts[] = {{"compute", step.compute},
                                                  {"layers' communication", step.layers},
                                                  {"bubble", step.bubble},
                                                  {"gradients, not hidden", step.gradients}};
  for (const auto& [name, seconds] : parts) {
    std::printf("  %-24s %10.3f ms  %5.1f %%\n", name, 1e3 * seconds, 100 * seconds / step.seconds);
  }
  std::printf("  %-24s %10.3f ms\n", "step", 1e3 * step.seconds);
  std::printf("  %-24s %10.1f samples/s\n", "throughput", step.samples_per_second());
  std::printf("  %-24s %10.1f %%\n", "scaling efficiency", 100 * scaling_efficiency(scenario));
  std::printf("  %-24s %10s of %s%s\n", "memory of a rank", format_bytes(std::llround(step.memory)).c_str(),
              format_bytes(std::llround(scenario.cluster.memory)).c_str(), step.fits ? "" : ": does not fit");
}

void print_search(const Scenario& scenario) {
  const auto steps = search(scenario);
  std::printf("%zu meshes fit into memory\n", steps.size());
  for (std::size_t i = 0; i < std::min(steps.size(), kShown); ++i) {
    std::printf("  %10.1f samples/s  %9.3f ms  %8s  %s\n", steps[i].samples_per_second(), 1e3 * steps[i].seconds,
                format_bytes(std::llround(steps[i].memory)).c_str(), mesh_text(steps[i].mesh).c_str());
  }
}

void print_validation(const std::string& path) {
  for (const auto& row : simulate::validate(path)) {
    std::printf("  %-40s measured %9.4g  predicted %9.4g  %s\n", row.name.c_str(), row.measured, row.predicted,
                row.calibrates ? "calibrated" : format_text("%+.1f %%", 100 * row.error()).c_str());
  }
}

void draw(const Scenario& scenario, const std::string& svg) {
  std::ofstream file(svg);
  file << draw_scaling(scenario.model.name, scaling(scenario));
  if (!file.flush()) throw Error("--svg: cannot write " + svg);
  std::printf("%s\n", svg.c_str());
}

int run(const Arguments& arguments) {
  std::string path, svg, published;
  std::vector<std::string> overrides;
  bool searches = false, help_scenario = false;
  Flags flags(arguments, {"tools/simulate/gpt_cluster.yaml --search"});
  flags.add("scenario", &path, "YAML file of cluster, model, mesh and train; --scenario may be omitted");
  flags.add_overrides(&overrides, kOverridesHelp);
  flags.add("search", &searches, "show the best meshes that fit into memory, instead of the mesh in the file");
  flags.add("svg", &svg, "SVG file for a plot of throughput over the number of ranks");
  flags.add("validate", &published, "file of published runs: compare predictions with it");
  flags.add("help_scenario", &help_scenario, "show all keys of a scenario");
  auto others = flags.parse(arguments.words);
  take_positional(others, path);
  refuse(others);
  Scenario scenario;
  if (help_scenario) {
    std::fputs(config::describe(scenario).c_str(), stdout);
    return kDone;
  }
  if (!published.empty()) {
    print_validation(published);
    return kDone;
  }
  if (path.empty()) {
    throw ConfigError("no scenario: " + arguments.name + " --scenario FILE (see --help, --help_scenario)");
  }
  config::load(scenario, path, overrides);
  searches ? print_search(scenario) : print(simulate::simulate(scenario), scenario);
  if (!svg.empty()) draw(scenario, svg);
  return kDone;
}

const bool simulate_registered = register_command(
    {"simulate", "predicts training steps on a cluster, which need not exist", CommandGroup::kPlanning, run});

}  // namespace
}  // namespace phalanx
