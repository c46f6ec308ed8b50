#!/bin/sh
# A wrong pointer that the program gives to libc is found out where it would be without the engine: by libc, by the program's
# handler, by the kernel.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
mkdir plans
gcc -g -O1 -pthread "$RACE_SOURCE/tests/probe/pointers.c" -o pointers 2>/dev/null || fail "pointers.c does not compile"
"$RACE_TOOLS/makeplan" plans ./pointers >"$work/out" || fail "no plan"
for how in handler once deadly; do
    run ./pointers "$how"
    native=$code
    cp "$work/out" native
    run env RACE_OPTIONS="-plan $work/plans" LD_PRELOAD="$RACE_BUILD/librace_probe.so" ./pointers "$how"
    checks=$((checks + 1))
    [ "$code" = "$native" ] || fail "$how: exit code $code instead of $native: $(head -c 300 "$work/err")"
    cmp -s native "$work/out" || fail "$how: $(cat "$work/out") instead of $(cat native)"
done
finish
