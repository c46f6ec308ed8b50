#!/bin/sh
# Programs that treat their own code as data, that load and unload libraries thousands of times, or that are cancelled at
# any instruction, do what they do without the engine. Code that a program changes is its own again, and that is said.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
mkdir plans
gcc -O2 -g -shared -fPIC "$RACE_SOURCE/tests/probe/plugin.c" -o plugin.so || fail "plugin.c does not compile"
for options in "-O0" "-O2 -no-pie -fno-pie" "-O2 -fPIE -pie"; do
    # shellcheck disable=SC2086 # several words
    gcc $options -g -pthread "$RACE_SOURCE/tests/probe/selfmod.c" -o selfmod 2>"$work/build" || fail "$(head -1 "$work/build")"
    "$RACE_TOOLS/makeplan" plans ./selfmod plugin.so >"$work/out" || fail "no plan"
    for how in write system key remap file scan closes cancel; do
        run ./selfmod $how ./plugin.so
        cp "$work/out" native
        [ "$code" = 0 ] || fail "$how: exit code $code by itself"
        run env RACE_OPTIONS="-plan $work/plans" LD_PRELOAD="$RACE_BUILD/librace_probe.so" ./selfmod $how ./plugin.so
        checks=$((checks + 1))
        [ "$code" = 0 ] || fail "$options: $how: exit code $code: $(tail -3 "$work/err")"
        case $how in
        scan) [ "$(head -1 "$work/out")" = changed ] || fail "$options: it was not patched at all" ;;
        *) cmp -s native "$work/out" || fail "$options: $how: $(cat "$work/out") instead of $(cat native)" ;;
        esac
        case $how in
        write | system | key) [ "$(grep -c 'makes its own code writable' "$work/err")" = 1 ] || fail "$options: $how: $(cat "$work/err")" ;;
        *) [ ! -s "$work/err" ] || fail "$options: $how: $(head -3 "$work/err")" ;;
        esac
    done
done
finish
