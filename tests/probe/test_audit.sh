#!/bin/sh
# What the analysis says of accesses that cannot race is true of random programs, which are the same each time.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"
command -v python3 >/dev/null || skip "no python3"
"$RACE_SOURCE/tools/audit-fuzz" --build "$RACE_BUILD" --from 41 --programs 12 >"$work/out" 2>"$work/err"
code=$?
checks=$((checks + 1))
[ "$code" = 0 ] || fail "exit code $code: $(grep 'wrong' "$work/out" "$work/err" | tail -3)"
# they are programs worth the question
checks=$((checks + 1))
for kind in guarded ordered unshared; do
    grep -q "$kind [0-9]*, ran [1-9]" "$work/out" || fail "nothing that is called $kind has run: $(tail -3 "$work/out")"
done
grep 'all 12 programs, 0 runs without' "$work/out" | awk '{ exit $3 < 20 || $4 != $3 }' || fail "races: $(grep 'all 12' "$work/out")"
finish
