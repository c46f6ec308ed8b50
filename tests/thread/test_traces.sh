#!/bin/sh
# What the engines tell the core, given to an oracle of full vector clocks, has the races that were found, and no others; and
# both engines make the same checks in programs whose threads always do the same. tools/run-traces does all programs.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/record/librace_probe.so" ] || skip "no engine that records in this build"
[ -f "$RACE_BUILD/samples/verdicts.tsv" ] || skip "no programs with verdicts in this build"
traces() { "$RACE_SOURCE/tools/run-traces" --build "$RACE_BUILD" --runs 2 --compiler gcc --options -O2 "$@" >"$work/table" 2>&1; }

for engine in librace_probe:probe librace:dynamorio; do # by themselves: what these do depends on the schedule
    [ -f "$RACE_BUILD/record/${engine%%:*}.so" ] || continue
    checks=$((checks + 1))
    traces --engine "${engine#*:}" blind/mutex_two_locks verdict/free_wrong verdict/omp_barrier_wrong verdict/rwlock_wrong \
        blind/once_config verdict/barrier_right || fail "$(cat "$work/table")"
    grep -q '^6 programs, .* [1-9][0-9]* bytes raced: 0 differences' "$work/table" || fail "too little was recorded: $(cat "$work/table")"
done

checks=$((checks + 1))
traces kernels/crypt-pthreads kernels/crypt-openmp kernels/lufact-openmp kernels/sor-pthreads kernels/sparse-openmp || fail "$(cat "$work/table")"
grep -q '^5 programs, .*: 0 differences' "$work/table" || fail "too little was recorded: $(cat "$work/table")"
[ ! -f "$RACE_BUILD/record/librace.so" ] || grep -q '^5 deterministic programs' "$work/table" || fail "the kernels' threads always do the same: $(cat "$work/table")"

# The oracle itself says no when a race is left out: the recording of one, without what the core had to say about it.
checks=$((checks + 1))
gcc -g -O1 -pthread "$RACE_SOURCE/tests/thread/racy.c" -o "$work/racy" || exit 1
mkdir "$work/bin" "$work/traces"
cp "$RACE" "$RACE_BUILD/record/librace_probe.so" "$work/bin/"
run env RACE_RECORD="$work/traces" "$work/bin/race" run --state "$work/state" "$work/racy"
[ "$code" = 66 ] || fail "the engine that records ends with $code: $(head -3 "$work/err")"
trace=$(ls "$work"/traces/*)
expect 0 "$RACE_TOOLS/replay" "$trace"
# kind NAME: its number in a recording
kind() { printf '#include <stdio.h>\n#include "tests/record/trace.h"\nint main(void) { printf("%%d", %s); }\n' "$1" >"$work/kind.c" &&
    gcc -I"$RACE_SOURCE" -o "$work/kind" "$work/kind.c" && "$work/kind"; }
race=$(kind TRACE_RACE) lost=$(printf %02x000000 "$(kind TRACE_LOST)")
at=0
while kind=$(number_at "$trace" $((at * 48)) 4) && [ "$kind" != 0 ]; do
    [ "$kind" != "$race" ] || patch "$trace" $((at * 48)) "$lost"
    at=$((at + 1))
done
expect 1 "$RACE_TOOLS/replay" "$trace"
has "races, and was not reported"
finish
