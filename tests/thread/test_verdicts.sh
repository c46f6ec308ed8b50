#!/bin/sh
# Programs with verdicts, one run each: nothing is reported on lines that do not race, and the program does what it does
# by itself. tools/samples-run does all of them, many times.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -n "${RACE_DYNAMORIO-}" ] && [ -f "$RACE_BUILD/librace.so" ] || skip "no DynamoRIO: the client was not built"
list=$RACE_BUILD/samples/verdicts.tsv
[ -f "$list" ] || skip "the programs with verdicts are not built"
checks=1
# one program of each category, the optimised build of gcc
names=$(awk -F '\t' '$3 == "gcc" && $4 ~ /-O2/ && !($2 in done) && system("test -x " $5) == 0 { done[$2]; print $1 }' "$list")
# shellcheck disable=SC2086 # a list of words
"$RACE_SOURCE/tools/samples-run" --build "$RACE_BUILD" --runs 1 --compiler gcc --options -O2 $names >"$work/table" ||
    fail "$(head -20 "$work/table")"
tail -1 "$work/table"
finish
