#!/bin/sh
# Incremental is from scratch, and parallel is sequential: random edits of samples, and the whole relation is compared after
# each update, for each kind of context and each algorithm; once with every edit an update of its own, once in batches; and the same
# with wild.c, whose pointers are wild.
. "$RACE_SOURCE/tests/lib/check.sh"

export OMP_WAIT_POLICY=passive # many short parallel parts; waiting threads would take the time of other tests
[ -f "$RACE_MATRIX" ] || skip "no matrix of samples"
grep -v '^#' "$RACE_MATRIX" | awk -F '\t' '
    $5 != "static" && $5 != "shared" && $5 != "object" && ($4 == "O0" || $4 == "O2") && !seen[$2 $4]++ { print $1 }' \
    >"$work/programs"
[ -s "$work/programs" ] || fail "no programs in the matrix"

# law PROGRAM OPTION...: it holds, and everything that was asked for has been done.
law() {
    checks=$((checks + 1))
    "$RACE_TOOLS/pta_law" --context "$context" --algorithm "$algorithm" --seed 7 "$@" >"$work/out" 2>&1 ||
        fail "$context, $algorithm, $*: $(head -c 1000 "$work/out")"
    has_line '^[0-9]+ edits, [0-9]+ updates, .* compared, 0 different'
    awk '/ edits, / { if ($1 == 0 || $7 == 0 || $7 != 3 && $7 != $3) exit 1 }' "$work/out" || fail "$context, $algorithm, $*: $(cat "$work/out")"
}

while read -r program; do
    for context in none origin cfa:1 cfa:2; do
        for algorithm in ipa reset reach; do
            law --edits 30 --batch 1 "$program"
            case $program in */gcc-O2-*) law --edits 100 --batch 60 --threads 1 --threads 2 "$program" ;; esac
        done
    done
done <"$work/programs"

# Where most pointers are wild.
for level in O0 O2; do
    gcc -std=gnu17 -g -$level "$RACE_SOURCE/tests/pointer/wild.c" -o "$work/wild-$level" || fail "wild.c cannot be built"
    for context in none origin cfa:1; do
        for algorithm in ipa reset reach; do
            law --edits 60 --batch 1 --wild 1 "$work/wild-$level"
            law --edits 60 --batch 1 --wild 4 "$work/wild-$level" # fewer without contexts, and of prone pointers
            law --edits 100 --batch 30 --wild 2 --threads 1 --threads 2 "$work/wild-$level"
        done
    done
done

# The same seed is the same edits.
context=origin algorithm=ipa
for run in first second; do
    law --edits 50 --batch 5 --comparisons 3 "$(head -1 "$work/programs")"
    sed 's/different,.*//' "$work/out" >"$work/$run"
done
cmp -s "$work/first" "$work/second" || fail "another run with the same seed: $(cat "$work/first" "$work/second")"
grep -q ' 3 compared,' "$work/first" || fail "not 3 points: $(cat "$work/first")"

# A list of edits can be replayed; one that names no statement is told.
printf 'before\ndelete 0 0\nupdate\ninsert 0 0\n' >"$work/list"
expect 0 "$RACE_TOOLS/pta_law" --replay "$work/list" "$(head -1 "$work/programs")"
has "the law holds"
printf 'update\ndelete 4000000 0\n' >"$work/list"
expect 2 "$RACE_TOOLS/pta_law" --replay "$work/list" "$(head -1 "$work/programs")"
error_has "no list of edits of this program"

# The tool on real programs, with its table.
run bash "$RACE_SOURCE/tools/pta-law" --tools "$RACE_TOOLS" --edits 40 --comparisons 4 --context none --context cfa:1 \
    "sample=$(head -1 "$work/programs")"
checks=$((checks + 1))
[ "$code" = 0 ] || fail "tools/pta-law: $(cat "$work/out" "$work/err")"
[ "$(grep -cE '^sample +(none|cfa:1) +(ipa|reach|reset) +40 +[0-9]+ +[0-9]+ +4 +0 ' "$work/out")" = 6 ] ||
    fail "tools/pta-law does not have 6 rows: $(cat "$work/out")"
finish
