#!/bin/sh
# Random code with accesses in it: all registers, the flags and the memory are after it what they are without checks.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
cd "$work" || exit 1
gcc -O1 "$RACE_SOURCE/tests/thread/blocks.c" -o blocks || fail "blocks.c does not compile"
for seed in 2 46 47; do # the first is one that a client with rax among its scratch registers got wrong
    ./blocks $seed 200 >code.S
    gcc -O1 -pthread "$RACE_SOURCE/tests/thread/blocks_run.c" code.S -o run || fail "seed $seed does not compile"
    ./run >native || fail "seed $seed: it does not run alone"
    expect 0 "$RACE" run ./run
    cmp -s native "$work/out" || fail "seed $seed: $(cat native) alone, $(cat "$work/out") with checks"
done
finish
