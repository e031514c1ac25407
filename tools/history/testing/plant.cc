// SPDX-License-Identifier: Apache-2.0
// Writes a database of nights that never were: plant results.sqlite --nights 200 --cases 50

#include "launch/exit_status.h"
#include "launch/program.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"
#include "tools/history/testing/planted.h"

namespace phalanx::history {
namespace {

int plant_file(const std::string& path, const PlantedNights& planted) {
  Database database(path, OpenMode::kCreate);
  plant(database, planted);
  return kDone;
}

int run(const Arguments& arguments) {
  PlantedNights planted;
  std::string path;
  Flags flags(arguments, {"results.sqlite --nights 30 --slower_from 20"});
  flags.add("nights", &planted.nights, "number of nights");
  flags.add("cases", &planted.cases, "number of cases of each night");
  flags.add("epochs", &planted.epochs, "number of epochs of each run");
  flags.add("noise", &planted.noise, "standard deviation of the throughput, relative to it");
  flags.add("slower_from", &planted.slower_from, "the night from which on the first case is slower; -1: never");
  flags.add("slower_by", &planted.slower_by, "how much slower, relative to the throughput");
  auto words = flags.parse(arguments.words);
  take_positional(words, path);
  refuse(words);
  return plant_file(path, planted);
}

}  // namespace
}  // namespace phalanx::history

int main(int argc, char** argv) {
  return phalanx::run_main([&] {
    return phalanx::history::run(
        {.name = "plant", .purpose = "writes nights that never were", .words = {argv + 1, argv + argc}});
  });
}
