// SPDX-License-Identifier: Apache-2.0
// Completion of command lines by bash and zsh: completion bash, completion zsh. The scripts know the names of the
// commands. They get a command's flags and config keys from `phalanx complete NAME`.
#include <cstdio>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "launch/exit_status.h"
#include "tools/command/command.h"
#include "tools/command/flags.h"

namespace phalanx {
namespace {

// Flags, or the keys of a config if one is named already. Bash completes files by itself where there are no candidates.
// It splits words at equals signs, so that nothing is left to do behind one.
constexpr const char* kBash = R"bash(# Completes the commands of phalanx in bash: eval "$(phalanx completion bash)"
_phalanx() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} line candidates
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '@COMMANDS@' -- "$word"))
    return
  fi
  [[ $word != = && $previous != = ]] || return
  line="${COMP_WORDS[*]:2:COMP_CWORD-2} "
  candidates=$("$1" complete "${COMP_WORDS[1]}" 2>/dev/null)
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$candidates" -- "$word"))
  elif [[ $line == *.yaml\ * && $previous != --* ]]; then
    COMPREPLY=($(compgen -W "$candidates" -X '-*' -- "$word"))
    compopt -o nospace 2>/dev/null
  fi
}
complete -o default -F _phalanx phalanx
)bash";

constexpr const char* kZsh = R"zsh(#compdef phalanx
# Completes the commands of phalanx in zsh: eval "$(phalanx completion zsh)" after compinit
_phalanx() {
  local -a candidates
  if ((CURRENT == 2)); then
    candidates=(
@COMMANDS@    )
    _describe command candidates
    return
  fi
  candidates=(${(f)"$($words[1] complete $words[2] 2>/dev/null)"})
  if [[ $words[CURRENT] == -* ]]; then
    compadd -- ${(M)candidates:#-*}
  elif [[ -n ${(M)words[3,CURRENT-1]:#*.yaml} && $words[CURRENT-1] != --* ]]; then
    compadd -S '' -- ${candidates:#-*}
  else
    _files
  fi
}
compdef _phalanx phalanx
)zsh";

std::vector<Command> shown_commands() {
  std::vector<Command> shown = commands();
  std::erase_if(shown, [](const Command& command) { return command.group == CommandGroup::kHidden; });
  return shown;
}

std::string in_bash() {
  std::string names;
  for (const auto& command : shown_commands()) names += (names.empty() ? "" : " ") + command.name;
  return names;
}

// Returns a line 'NAME:PURPOSE' for each command, with the quotes in it escaped.
std::string in_zsh() {
  std::string lines;
  for (const auto& command : shown_commands()) {
    lines += "      '" + command.name + ":";
    for (const char c : command.purpose) lines += c == '\'' ? std::string("'\\''") : std::string(1, c);
    lines += "'\n";
  }
  return lines;
}

int print_script(const Arguments& arguments) {
  const Flags flags(arguments, {"bash", "zsh"},
                    "To load it: eval \"$(phalanx completion bash)\", with phalanx on PATH or as an alias of a path.");
  const auto words = flags.parse(arguments.words);
  const std::string shell = words.size() == 1 ? words[0] : "";
  if (shell != "bash" && shell != "zsh") throw ConfigError("name one shell: bash or zsh (see --help)");
  std::string script = shell == "bash" ? kBash : kZsh;
  const std::string place = "@COMMANDS@";
  script.replace(script.find(place), place.size(), shell == "bash" ? in_bash() : in_zsh());
  std::fputs(script.c_str(), stdout);
  return kDone;
}

// Prints the flags and the config keys that may follow a command, one to a line.
int print_candidates(const Arguments& arguments) {
  const Command* const command = arguments.words.size() == 1 ? find_command(arguments.words[0]) : nullptr;
  if (command == nullptr) throw ConfigError("expected the name of one command");
  return command->run({.name = command->name,
                       .purpose = command->purpose,
                       .words = {std::string("--") + kListFlag},
                       .program = {arguments.program.front(), command->name}});
}

const bool completion_registered = register_command(
    {"completion", "prints the script that completes commands in bash or zsh", CommandGroup::kShell, print_script});
const bool complete_registered =
    register_command({"complete", "prints what may follow a command", CommandGroup::kHidden, print_candidates});

}  // namespace
}  // namespace phalanx
