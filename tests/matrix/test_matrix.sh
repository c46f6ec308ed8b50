#!/bin/sh
# Every program of the sample matrix is understood: the same functions by name, no indirect jump left unresolved, and
# without symbols as well.
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_MATRIX" ] || skip "the sample matrix is not built"
json="$RACE_TOOLS/json_get"
[ -x "$json" ] || skip "the test tools are not built"
tab=$(printf '\t')

# The functions that a sample defines, and that are in the program whatever the optimisation: thread functions and main.
functions_of() {
    echo main
    sed -n 's/^static void \*\([a-z_]*\)(void \*argument)$/\1/p' "$1"
}

value() { "$json" "$work/json" "modules.0.$1"; }

rows=0
while IFS=$tab read -r program source compiler opt link debug stripped; do
    case $program in '#'*) continue ;; esac
    rows=$((rows + 1))
    # Sanitized, a static program takes a while: there, one of each kind tells as much.
    case $RACE_BUILD_TYPE-$link-$opt in Sanitize-static-O[13]) continue ;; esac
    expect 0 "$RACE" show --format json "$program"
    [ "$code" = 0 ] || continue
    cp "$work/out" "$work/json"
    [ "$(value functions)" -ge 2 ] || fail "$program: fewer than two functions"
    case $stripped in yes) wanted=false ;; *) wanted=true ;; esac
    [ "$(value has_symbols)" = $wanted ] || fail "$program: has_symbols is not $wanted"
    [ "$link" != static ] || continue # what it has besides is libc's
    [ "$(value indirect_jumps.unresolved)" = 0 ] || fail "$program: unresolved jumps"
    [ "$(value not_understood.blocks)" = 0 ] || fail "$program: undecodable blocks"
    case $debug in none) wanted=false ;; *) wanted=true ;; esac
    [ "$(value has_debug)" = $wanted ] || fail "$program: has_debug is not $wanted"
    case $stripped,$source in yes,* | *.cpp) continue ;; esac
    for function in $(functions_of "$RACE_SOURCE/samples/$source"); do
        expect 0 "$RACE" show "$program" "$function"
        [ "$debug" = none ] || has_line "$source:[0-9]+"
    done
done <"$RACE_MATRIX"
[ "$rows" -gt 100 ] || fail "only $rows programs in the matrix"
echo "$rows programs"
finish
