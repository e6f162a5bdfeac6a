// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

// The scripts call `hpcai500 completion words WORD...`, which prints the completions of the last
// WORD. bash separates words at "=" by default and then replaces only the text after it.
constexpr const char* kBash = R"sh(_hpcai500() {
    local words word line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    [[ $line != *[[:space:]] ]] || words+=("")
    word=${words[-1]}
    mapfile -t COMPREPLY < <("${words[0]}" completion words "${words[@]:1}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
    [[ $word != *=* || $COMP_WORDBREAKS != *=* ]] || COMPREPLY=("${COMPREPLY[@]#"${word%=*}="}")
}
complete -o default -F _hpcai500 hpcai500
)sh";
constexpr const char* kZsh = R"sh(#compdef hpcai500
_hpcai500() {
    local -a found
    found=(${(f)"$("${words[1]}" completion words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (($#found)); then
        compadd -S '' -- ${(M)found:#*=}
        compadd -- ${found:#*=}
    else
        _files
    fi
}
if [[ $funcstack[1] == _hpcai500 ]]; then _hpcai500 "$@"; else compdef _hpcai500 hpcai500; fi
)sh";
constexpr const char* kFish = R"sh(function __hpcai500
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    $words[1] completion words $words[2..-1] "$word" 2>/dev/null
end
complete -c hpcai500 -a '(__hpcai500)'
)sh";

struct CompletionOptions {
    const char* script = kBash;
};

ExitCode print_script(const CompletionOptions& options, const Context& context) {
    context.out << options.script;
    return ExitCode::ok;
}

}  // namespace

void add_completion_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"completion",
         "Print a script that completes commands, options, keys and values in a shell.",
         {"source <(hpcai500 completion bash)",
          "hpcai500 completion fish > ~/.config/fish/completions/hpcai500.fish"}},
        print_script);
    command.add_choice("SHELL", options.script, {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}},
                       "default: bash");
}

}  // namespace hpcai::cli
