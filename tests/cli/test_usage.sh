#!/bin/sh
# Help, version and wrong usage: what is asked for goes to stdout with code 0, what is wrong is one line and code 2.
. "$RACE_SOURCE/tests/lib/check.sh"

expect 0 "$RACE" --version
has_line '^race [0-9]+\.[0-9]+\.[0-9]+$'
expect 0 "$RACE" --help
has 'usage: race SUBCOMMAND'
cp "$work/out" "$work/help"
subcommands=$(sed -n '/^subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/help")
[ -n "$subcommands" ] || fail "race --help lists no subcommands"
expect 0 "$RACE" -h
expect 0 "$RACE" help
cmp -s "$work/out" "$work/help" || fail "race help and race --help differ"

for name in $subcommands; do
    expect 0 "$RACE" "$name" --help
    has "usage: race $name"
    cp "$work/out" "$work/help"
    expect 0 "$RACE" help "$name"
    cmp -s "$work/out" "$work/help" || fail "race help $name and race $name --help differ"
    expect_error "$RACE" "$name"
    expect_error "$RACE" "$name" --no-such-option
    error_has --no-such-option
    # The man page and the completion know what the help knows.
    for option in $(grep -oE '^ +(-[a-z], )?--[a-z-]+' "$work/help" | grep -oE -- '--[a-z-]+'); do
        grep -qF -- "$(echo "$option" | sed 's/-/\\-/g')" "$RACE_SOURCE/tools/race/race.1" ||
            fail "the man page does not know $option of race $name"
        grep -qF -- "$option" "$RACE_SOURCE/tools/race/completion.bash" ||
            fail "the completion does not know $option of race $name"
    done
done

expect_error "$RACE"
expect_error "$RACE" no-such-subcommand
error_has no-such-subcommand
expect_error "$RACE" --no-such-option
expect_error "$RACE" "$(printf 'line\nbreak')"
expect_error "$RACE" show -Z x
expect_error "$RACE" show --format
expect_error "$RACE" show --format xml "$RACE"
expect_error "$RACE" show --format dot "$RACE"
expect_error "$RACE" show --cfg "$RACE"
expect_error "$RACE" show --cfg=yes "$RACE" main
for jobs in 0 -1 1025 2x '' 99999999999999999999; do
    expect_error "$RACE" show --jobs "$jobs" "$RACE"
done

# Output that cannot be written is an error, whatever was printed.
if [ -w /dev/full ]; then
    for arguments in --help --version "show --help"; do
        checks=$((checks + 1))
        # shellcheck disable=SC2086
        "$RACE" $arguments >/dev/full 2>"$work/err"
        [ $? = 2 ] || fail "race $arguments succeeds on a full disk"
        one_line "race $arguments"
        # shellcheck disable=SC2086
        "$RACE" $arguments >&- 2>"$work/err"
        [ $? = 2 ] || fail "race $arguments succeeds without a stdout"
        one_line "race $arguments"
    done
fi
mkfifo "$work/pipe"
"$RACE" show --help >"$work/pipe" 2>"$work/err" & pid=$!
exec 3<"$work/pipe" 3<&-
wait "$pid"
code=$?
# Whether the reader was gone before the write is a race of its own; but it must be one of the two.
[ "$code" = 0 ] || { [ "$code" = 2 ] && one_line "race into a closed pipe"; } || fail "closed pipe: exit code $code"
finish
