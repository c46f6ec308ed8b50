# bash completion of race. Installed as completions/race; or: . tools/race/completion.bash

# Options of each subcommand; what an option that takes a value accepts is in _race_values.
_race_options() {
    case $1 in
    check)
        echo "--format --all --open --suppressions --config --context --incremental --diff --state --full --no-state --stats --jobs --help"
        ;;
    run)
        echo "--engine --scope --place --state --plan --log --format --output --suppressions --halt-on-error" \
            "--exit-code --all --audit --breakpoints --unchecked --memory --stack-depth --stats --jobs --help"
        ;;
    show) echo "--ir --cfg --pts --callgraph --shb --plan --context --format --all --jobs --help" ;;
    watch) echo "--format --open --suppressions --config --context --incremental --settle --all --changes --recheck --jobs --help" ;;
    *) echo "--help --version" ;;
    esac
}

_race_values() {
    case $1,$2 in
    show,--format) echo "text dot json" ;;
    check,--format | run,--format | watch,--format) echo "text json" ;;
    check,--incremental | watch,--incremental) echo "ipa reset reach" ;;
    check,--context | show,--context | watch,--context) echo "none origin origin:2 cfa:1 cfa:2" ;;
    check,--jobs | check,-j | watch,--jobs | watch,-j | show,--jobs | show,-j | run,--jobs | run,-j) echo "1 2 4 8" ;;
    run,--engine) echo "dynamorio probe" ;;
    run,--scope) echo "shared warned all" ;;
    run,--place) echo "ft" ;;
    run,--exit-code) echo "66" ;;
    *) return 1 ;;
    esac
}

# Names of the functions of a program, when nm can list them.
_race_functions() {
    nm --defined-only -- "$1" 2>/dev/null | sed -n 's/^[0-9a-f]* [tTwW] \(.*\)$/\1/p'
}

_race() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} subcommand=${COMP_WORDS[1]}
    local values word file="" i
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "check run show watch help $(_race_options '')" -- "$current")
        return
    fi
    if [ "$subcommand" = help ]; then
        mapfile -t COMPREPLY < <(compgen -W "check run show watch" -- "$current")
        return
    fi
    if values=$(_race_values "$subcommand" "$before"); then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
        return
    fi
    case $subcommand,$before in check,--suppressions | check,--config | watch,--suppressions | watch,--config)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    check,--state | run,--state | run,--plan | run,--log)
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return
        ;;
    esac
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_race_options "$subcommand")" -- "$current")
        return
    fi
    if [ "$subcommand" = run ]; then
        mapfile -t COMPREPLY < <(compgen -c -- "$current"; compgen -f -- "$current")
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word != -* && -f $word ]]; then file=$word; fi
    done
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    if [ "$subcommand" = show ] && [ -n "$file" ]; then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$(_race_functions "$file")" -- "$current")
    fi
}

complete -o filenames -F _race race
