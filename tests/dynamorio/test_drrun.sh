#!/bin/sh
# The client as a user of DynamoRIO has it, without `race` and without plans: options, refusals, and reports with source lines.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
here=$RACE_SOURCE/tests/thread
cd "$work" || exit 1
gcc -O1 -g -pthread "$here/racy.c" -o racy || exit 1
marked() { grep -n "// $1" "$here/racy.c" | cut -d: -f1; }
printf '#!/bin/sh\nexec "%s/bin64/drrun" -quiet -c "%s/librace.so" "$@"\n' "$RACE_DYNAMORIO" "$RACE_BUILD" >client
chmod +x client

expect 0 ./client -help -- ./racy
has "usage: drrun -c librace.so"
has "-suppressions FILE"
expect_error ./client -wishful -- ./racy
run ./client -plan "$work/nowhere" -- ./racy
[ "$code" = 0 ] || fail "a program without a plan: exit code $code"
one_line ./client
error_has "it runs unchecked"

expect 66 ./client -plan "$work/nowhere" -all -- ./racy
error_has "racy.c:$(marked 'RACE read')"
error_has "racy.c:$(marked 'RACE write')"
error_has "SUMMARY: race: data race racy.c:"

gcc -O1 -g -static -pthread "$here/racy.c" -o static 2>"$work/build" || skip "no static libc"
run ./client -- ./static
[ "$code" = 0 ] || fail "a static program: exit code $code"
one_line ./client
error_has "statically linked"
finish
