#!/bin/sh
# The whole way: image, IR, plan, DynamoRIO client, FastTrack, a printed race with both source lines.
. "$RACE_SOURCE/tests/lib/check.sh"

needs_engine
here=$RACE_SOURCE/tests/thread
cd "$work" || exit 1

# marked WORDS: the number of the line of racy.c with this comment.
marked() { grep -n "// $1" "$here/racy.c" | cut -d: -f1; }

# sides: of each report in $work/err one line: kind and line number of both accesses, sorted.
sides() {
    awk '/^WARNING: race: data race \(pid=[0-9]+\)$/ { n = 0 }
        /^  (Previous )?([Rr]ead|[Ww]rite|[Ff]ree) of size [0-9]+ at 0x[0-9a-f]+ by (main thread|thread T[0-9]+):$/ {
            kind = tolower($1 == "Previous" ? $2 : $1)
            next
        }
        kind && /^    #0 / {
            match($0, /\.c:[0-9]+/)
            side[++n] = kind " " substr($0, RSTART + 3, RLENGTH - 3)
            kind = ""
        }
        /^SUMMARY: race: data race / { print side[1] < side[2] ? side[1] ", " side[2] : side[2] ", " side[1] }
    ' "$work/err"
}

# build NAME COMPILER OPTION...
build() {
    name=$1
    shift
    "$@" -g -pthread "$here/$name.c" -o "$name" 2>"$work/build" || fail "$*: $(head -1 "$work/build")"
}

racing="read $(marked 'RACE read'), write $(marked 'RACE write')"
freeing="free $(marked 'FREED free'), read $(marked 'FREED read')"

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    for level in -O0 -O2; do
        for kind in "-fPIE -pie" "-fno-pie -no-pie"; do
            # shellcheck disable=SC2086 # the kind is two options
            build racy "$compiler" $level $kind
            # shellcheck disable=SC2086
            build ordered "$compiler" $level $kind
            what="$compiler $level $kind"

            expect 66 "$RACE" run ./racy
            [ "$(sides)" = "$racing" ] || fail "$what: reported \"$(sides)\" instead of \"$racing\""
            error_has "Location is global 'shared' of size 8"
            error_has "created by main thread at:"
            error_has "SUMMARY: race: data race racy.c:"

            expect 66 "$RACE" run ./racy 0 free
            [ "$(sides)" = "$freeing" ] || fail "$what: reported \"$(sides)\" instead of \"$freeing\""

            expect 0 "$RACE" run -- ./ordered # expect: nothing on stderr
            has "600 39800 600 600"
        done
    done
done

# Exit codes: the program's own, or one of the user's choice; the client does it, so plain drrun does too.
expect 3 "$RACE" run ./racy 3
[ "$(sides)" = "$racing" ] || fail "a program that fails is reported like another"
expect 9 "$RACE" run --exit-code 9 ./racy
case $engine in
probe) expect 66 env LD_PRELOAD="$RACE_BUILD/librace_probe.so" RACE_OPTIONS="-plan .race/plans" ./racy ;;
*) expect 66 "$RACE_DYNAMORIO/bin64/drrun" -quiet -c "$RACE_BUILD/librace.so" -plan .race/plans -- ./racy ;;
esac
[ "$(sides)" = "$racing" ] || fail "the engine alone reports \"$(sides)\""

# Reports go to the log too.
expect 66 "$RACE" run --log logs ./racy
grep -q 'WARNING: race: data race' logs/race.*.log || fail "no report in the log"

# Without symbols and lines everything still works on addresses.
strip -s -o stripped racy
expect 66 "$RACE" run ./stripped
error_has "(stripped+0x"

# Libraries of the program's own are checked too, also those without a build id.
build racy gcc -O1 -Dmain=racy_main -shared -fPIC -Wl,--build-id=none
mv racy libracy.so
echo 'int racy_main(int, char **); int main(int argc, char **argv) { return racy_main(argc, argv); }' >user.c
gcc user.c -o user -Wl,--build-id=none -Wl,-rpath,"$work" -L. -lracy || fail "user.c does not compile"
expect 66 "$RACE" run ./user
[ "$(sides)" = "$racing" ] || fail "in a library: reported \"$(sides)\" instead of \"$racing\""
error_has "(libracy.so+0x"
build racy gcc -O0

# A plan is reused, remade when it is damaged, and refused by the client when it is damaged.
rm -rf .race
expect 66 "$RACE" run ./racy
plan=$(ls .race/plans/*.plan)
before=$(stat -c '%i' "$plan")
expect 66 "$RACE" run ./racy
[ "$(stat -c '%i' "$plan")" = "$before" ] || fail "a current plan was made again"
patch "$plan" 200 ff
expect_error "$RACE" run --plan .race/plans ./racy
error_has "its checksum is wrong"
expect 66 "$RACE" run ./racy
[ "$(stat -c '%i' "$plan")" != "$before" ] || fail "a damaged plan was not made again"
[ "$(ls .race/plans | wc -l)" = 1 ] || fail "something was left beside the plan: $(ls .race/plans)"
build ordered gcc -O1
cp "$plan" "$work/other"
id=$(readelf -n ordered | sed -n 's/.*Build ID: //p')
cp "$work/other" ".race/plans/$id.plan"
expect_error "$RACE" run --plan .race/plans ./ordered
error_has "another build"

# Wrong usage and what cannot be run: one line, code 2.
expect_error "$RACE" run
expect_error "$RACE" run --engine wishful ./racy
expect_error "$RACE" run --exit-code 256 ./racy
expect_error "$RACE" run ./nowhere
expect_error "$RACE" run "$here/racy.c"
echo 'no program' >text && chmod +x text
expect_error "$RACE" run ./text
error_has "not an ELF"
gcc -static -pthread "$here/racy.c" -o static 2>/dev/null && expect_error "$RACE" run ./static
: >file
expect_error "$RACE" run --state file ./racy
cp "$RACE_COMMAND" lonely
expect_error ./lonely run --engine "$engine" ./racy
error_has "librace"
case $engine in
probe) expect_error env LD_PRELOAD="$RACE_BUILD/librace_probe.so" RACE_OPTIONS=-wishful ./racy ;;
*) expect_error "$RACE_DYNAMORIO/bin64/drrun" -quiet -c "$RACE_BUILD/librace.so" -wishful -- ./racy ;;
esac
finish
