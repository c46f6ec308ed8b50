#!/bin/sh
# Where anything may lead, in code of no compiler's functions, nothing is displaced: it computes what it computes.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
mkdir plans
for options in "-no-pie -fno-pie" "-no-pie -fno-pie -s"; do
    # shellcheck disable=SC2086 # several words
    gcc $options -O1 "$RACE_SOURCE/tests/probe/taken.c" -o taken 2>"$work/build" || fail "$(head -1 "$work/build")"
    "$RACE_TOOLS/makeplan" plans ./taken >"$work/out" || fail "no plan"
    ./taken >native
    run env RACE_OPTIONS="-plan $work/plans -stats" LD_PRELOAD="$RACE_BUILD/librace_probe.so" ./taken
    checks=$((checks + 1))
    [ "$code" = 0 ] || fail "$options: exit code $code: $(tail -3 "$work/err")"
    cmp -s native "$work/out" || fail "$options: $(cat "$work/out") instead of $(cat native)"
    grep -aq '[1-9][0-9]* sites by' "$work/err" || fail "$options: nothing was injected"
done
finish
