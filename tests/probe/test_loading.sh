#!/bin/sh
# A signal at any instruction of the loader, which the engine has hooked, shows an address of the program's own.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
gcc -O2 -g -shared -fPIC "$RACE_SOURCE/tests/probe/plugin.c" -o plugin.so || fail "plugin.c does not compile"
gcc -O0 -g -mno-red-zone -pthread "$RACE_SOURCE/tests/probe/loading.c" -o loading || fail "loading.c does not compile"
expect 0 ./loading ./plugin.so
has_line '^loaded, stepped, 0 strange$'
expect 0 "$RACE" run ./loading ./plugin.so
has_line '^loaded, stepped, 0 strange$'
finish
