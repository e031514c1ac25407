#include "tools/command_line.h"

#include <gflags/gflags.h>

#include <algorithm>

#include "tools/flags/parse_flags.h"
#include "tools/flags/take_overrides.h"

DEFINE_string(config, "", "YAML file that describes the run");
DEFINE_string(set, "", "key.path=value, overrides the config file; may be repeated");
DEFINE_string(run_dir, "", "folder for all output of the run (default: runs/<name>-<time>)");
DEFINE_string(resume, "",
              "resume from a checkpoint: auto (the newest of the run folder) or its path; sets checkpoint.resume");
DEFINE_bool(print_config, false, "print the resolved config, defaults included, and exit");
DEFINE_bool(help_config, false, "print every key a config can have, and exit");

namespace phalanx {

CommandLine parse_command_line(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  CommandLine line{.overrides = take_overrides(words)};
  refuse(parse_flags(
      {.purpose =
           "trains a model as set in a YAML file\n\n  train --config configs/quickstart.yaml --set optimizer.lr=0.05",
       .files = "tools/command_line."},
      words));
  line.config = FLAGS_config;
  line.run_dir = FLAGS_run_dir;
  if (!FLAGS_resume.empty()) line.overrides.push_back("checkpoint.resume=" + FLAGS_resume);
  line.print_config = FLAGS_print_config;
  line.help_config = FLAGS_help_config;
  return line;
}

}  // namespace phalanx
