#!/bin/sh
# Incremental is from scratch: random statements of samples go and come back, and the whole relation is compared each time,
# for each kind of context and each algorithm.
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_MATRIX" ] || skip "no matrix of samples"
grep -v '^#' "$RACE_MATRIX" | awk -F '\t' '
    $5 != "static" && $5 != "shared" && $5 != "object" && ($4 == "O0" || $4 == "O2") && !seen[$2 $4]++ { print $1 }' \
    >"$work/programs"
[ -s "$work/programs" ] || fail "no programs in the matrix"
while read -r program; do
    for context in none origin cfa:1 cfa:2; do
        for algorithm in ipa reset reach; do
            checks=$((checks + 1))
            "$RACE_TOOLS/pta_law" --context $context --algorithm $algorithm --edits 30 --batch 4 --seed 7 "$program" \
                >"$work/out" 2>&1 || fail "$program: $context, $algorithm: $(head -c 1000 "$work/out")"
        done
    done
done <"$work/programs"
finish
