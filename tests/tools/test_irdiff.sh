#!/bin/sh
# The IR of random blocks of system programs and of the samples does what the blocks do: see tests/tools/irdiff.c. The
# long run is tools/irdiff-soak.
. "$RACE_SOURCE/tests/lib/check.sh"

irdiff=$RACE_TOOLS/irdiff
[ -x "$irdiff" ] || skip "irdiff is not built: unicorn (libunicorn-dev) was not found"
case ${RACE_BUILD_TYPE:-} in
Release) blocks=20000 samples=4000 zoo=20000 ;;
*) blocks=1500 samples=500 zoo=1500 ;;
esac

# Programs and libraries of both kinds (position-independent and not), with hand-written and with vector code; those
# that this system has.
set --
for f in /usr/bin/bash /usr/bin/python3 /usr/bin/perl /usr/bin/git /usr/bin/ld.bfd /usr/bin/openssl \
    /lib/x86_64-linux-gnu/libc.so.6 /lib/x86_64-linux-gnu/libm.so.6 /usr/lib/x86_64-linux-gnu/libcrypto.so.3 \
    /usr/lib/x86_64-linux-gnu/libstdc++.so.6 /lib64/ld-linux-x86-64.so.2 /usr/lib/x86_64-linux-gnu/libgmp.so.10; do
    [ ! -f "$f" ] || set -- "$@" "$f"
done
[ $# -gt 0 ] || skip "none of the programs to test is installed"

compare() {
    checks=$((checks + 1))
    timeout 500 "$irdiff" "$@" >"$work/out" 2>&1 || fail "irdiff $*: code $?"
    cat "$work/out"
}
compare --blocks $blocks --seed 1 "$@"

# -O0, both compilers, not position-independent, stripped: some rows of the matrix, when it is built.
set --
if [ -f "${RACE_MATRIX:-}" ]; then
    for f in $(awk -F '\t' '$5 != "object" && ++n % 5 == 1 { print $1 }' "$RACE_MATRIX"); do
        [ ! -f "$f" ] || set -- "$@" "$f"
    done
fi
[ $# -eq 0 ] || compare --blocks $samples --seed 2 "$@"

# Random instructions, most of which no program here has.
compare --blocks $zoo --seed 3 --zoo $zoo
finish
