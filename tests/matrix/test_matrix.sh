#!/bin/sh
# Every program of the sample matrix is understood: the same functions by name, no indirect jump left unresolved, and
# without symbols as well.
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_MATRIX" ] || skip "the sample matrix is not built"
json="$RACE_TOOLS/json_get"
[ -x "$json" ] || skip "the test tools are not built"
tab=$(printf '\t')

# A static program is libc with a little of its own, again and again: all of one sample, one for each of the others, and
# one of each compiler where the sanitizers make it slow.
grep -v '^#' "$RACE_MATRIX" | awk -F '\t' -v type="$RACE_BUILD_TYPE" '
    { is_first = $2 == "racy_counter.c"; is_usual = $4 == "O2" && $6 == "none" && $7 == "no" }
    $5 != "static" || (type == "Sanitize" ? is_first && is_usual : is_first || is_usual)' >"$work/rows"

# One run for all: the summaries, beside what the manifest says.
cut -f1 "$work/rows" >"$work/programs"
checks=$((checks + 1))
xargs timeout 300 "$RACE" show --format json <"$work/programs" >"$work/json" 2>"$work/err" ||
    fail "race show of all: exit code $?: $(head -c 400 "$work/err")"
"$json" "$work/json" modules path functions has_symbols has_debug indirect_jumps.unresolved not_understood.blocks \
    >"$work/summaries" || fail "race show of all: not JSON"
cut -f1 "$work/summaries" | cmp -s - "$work/programs" || fail "not every program is shown"
paste "$work/summaries" "$work/rows" >"$work/table"

# The functions that a sample defines and that are in the program whatever the optimisation: main and thread functions.
functions_of() {
    echo main
    sed -n 's/^static void \*\([a-z_]*\)(void \*argument)$/\1/p' "$1"
}

rows=0
while IFS=$tab read -r path functions symbols debug_found unresolved bad program source compiler opt link debug stripped; do
    rows=$((rows + 1))
    checks=$((checks + 1))
    [ "$functions" -ge 2 ] || fail "$path: $functions functions"
    case $stripped in yes) wanted=false ;; *) wanted=true ;; esac
    [ "$symbols" = $wanted ] || fail "$path: has_symbols is not $wanted"
    [ "$link" != static ] || continue # what it has besides is libc's
    [ "$unresolved" = 0 ] || fail "$path: $unresolved unresolved jumps"
    [ "$bad" = 0 ] || fail "$path: $bad blocks that do not decode"
    case $debug in none) wanted=false ;; *) wanted=true ;; esac
    [ "$debug_found" = $wanted ] || fail "$path: has_debug is not $wanted"
    case $stripped,$source in yes,* | *.cpp) continue ;; esac
    names=$(functions_of "$RACE_SOURCE/samples/$source" | tr '\n' ' ')
    # shellcheck disable=SC2086
    expect 0 "$RACE" show --ir "$program" $names
    for name in $names; do has_line "^function $name "; done
    [ "$debug" = none ] || has_line "$source:[0-9]+"
done <"$work/table"
[ "$rows" -gt 100 ] || fail "only $rows programs in the matrix"
echo "$rows programs"
finish
