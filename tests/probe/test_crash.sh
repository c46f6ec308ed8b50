#!/bin/sh
# A program that dies of a fault dies as it would without the engine: of the same signal, at the same instruction.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
mkdir plans
gcc -g -O1 "$RACE_SOURCE/tests/probe/crash.c" -o crash 2>/dev/null || fail "crash.c does not compile"
"$RACE_TOOLS/makeplan" plans ./crash >"$work/out" || fail "no plan"
for how in fault sent again; do
    run ./crash "$how"
    native=$code
    cp "$work/out" native
    run env RACE_OPTIONS="-plan $work/plans" LD_PRELOAD="$RACE_BUILD/librace_probe.so" ./crash "$how"
    checks=$((checks + 1))
    [ "$code" = "$native" ] && [ "$code" -gt 128 ] || fail "$how: exit code $code instead of $native: $(head -c 300 "$work/err")"
    cmp -s native "$work/out" || fail "$how: $(cat "$work/out") instead of $(cat native)"
done

# The core that `race run` leaves is the program's, with the line of the write.
if command -v gdb >/dev/null && [ "$(cat /proc/sys/kernel/core_pattern)" = core ] && ulimit -c unlimited; then
    checks=$((checks + 1))
    rm -f core core.*
    run "$RACE" run ./crash fault
    found=$(find . -maxdepth 1 -name 'core*' | head -1)
    [ "$code" -gt 128 ] && [ -n "$found" ] || fail "no core: exit code $code"
    gdb -batch -ex bt ./crash "$found" >"$work/out" 2>&1 </dev/null
    line=$(grep -n CRASH "$RACE_SOURCE/tests/probe/crash.c" | cut -d: -f1)
    grep -q "^#0 .* sum (.*crash.c:$line" "$work/out" || fail "its core does not show line $line: $(tail -5 "$work/out")"
    ulimit -c 0
fi

# What a debugger finds in the end, after our handler: the line of the write, in the function.
if command -v gdb >/dev/null; then
    checks=$((checks + 1))
    cat >script <<END
set environment RACE_OPTIONS=-plan $work/plans
set environment LD_PRELOAD=$RACE_BUILD/librace_probe.so
set startup-with-shell off
run fault
continue
bt
END
    timeout 60 gdb -batch -x script ./crash >"$work/out" 2>&1 </dev/null
    line=$(grep -n CRASH "$RACE_SOURCE/tests/probe/crash.c" | cut -d: -f1)
    grep -q "^#0 .* sum (.*crash.c:$line" "$work/out" || fail "the debugger does not see line $line: $(tail -5 "$work/out")"
fi
finish
