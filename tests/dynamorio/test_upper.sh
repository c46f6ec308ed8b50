#!/bin/sh
# The client puts `vzeroupper` into hot loops of older SSE instructions: what a program has in the upper halves of its vector
# registers stays there, and where it has nothing the loops take as long as alone. Whether all of that can be told depends on the
# processor: AVX-512 for the one, one that minds for the other; and a busy machine, which keeps taking it away, hides the latter.
# ctest: release only, alone
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
grep -qw avx /proc/cpuinfo || skip "the processor has no AVX"
cd "$work" || exit 1
drrun=$RACE_DYNAMORIO/bin64/drrun
gcc -O3 -g -pthread "$RACE_SOURCE/tests/dynamorio/upper.c" -o upper || fail "upper.c does not compile"
./upper keep >native || fail "fails by itself"
for round in 1 2 3; do
    run "$drrun" -quiet -c "$RACE_BUILD/librace.so" -plan "$work/nowhere" -- ./upper keep
    [ "$code" = 0 ] && cmp -s native out || fail "round $round: exit code $code: $(head -4 out)"
    checks=$((checks + 1))
done
expect 0 "$RACE" run ./upper keep
cmp -s native out || fail "checked: $(head -4 out)"

# without vzeroupper 5 on an Intel Xeon, 7 on an AMD EPYC (family 26); a busy machine gets two more tries
for try in 1 2 3; do
    run "$drrun" -quiet -c "$RACE_BUILD/librace.so" -plan "$work/nowhere" -- ./upper speed
    ratio=$(cat out)
    awk -v r="$ratio" 'BEGIN { exit !(r > 0.3 && r < 2) }' && break
done
awk -v r="$ratio" 'BEGIN { exit !(r > 0.3 && r < 2) }' || fail "a loop takes '$ratio' times as long as one behind vzeroupper"
finish
