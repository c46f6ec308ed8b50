#!/bin/sh
# A thread that is unwound from an instruction that is no call finds its registers, in its landing pads and in its callers'.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
for level in 0 1 2; do
    g++ -O$level -fnon-call-exceptions -pthread "$RACE_SOURCE/tests/probe/unwinding.cpp" -o unwinding$level || fail "it does not compile"
    timeout 60 ./unwinding$level >native || fail "it fails alone"
    [ "$(cat native)" = "0 120 240 360 480 600 720 0 320 320" ] || fail "-O$level: alone it prints $(cat native)"
    run "$RACE" run --exit-code 0 ./unwinding$level
    checks=$((checks + 1))
    [ "$code" = 0 ] || fail "-O$level: exit code $code: $(tail -2 "$work/err")"
    cmp -s native "$work/out" || fail "-O$level: $(cat "$work/out") instead of $(cat native)"
done
finish
