#!/bin/sh
# Whatever the input is: one line that names the file, code 2, in no time.
. "$RACE_SOURCE/tests/lib/check.sh"

good=$RACE_BUILD/samples/racy_counter
[ -f "$good" ] || skip "the samples are not built"
expect 0 "$RACE" show "$good"

# bad FILE [WORDS]: is refused with a line that begins with its name and has the words.
bad() {
    expect_error "$RACE" show "$1"
    grep -qF "race: $1: " "$work/err" || fail "the line does not name $1: $(cat "$work/err")"
    [ -z "${2-}" ] || error_has "$2"
}

# patched OFFSET HEX [WORDS]: a copy of the good one with some bytes replaced.
patched() {
    cp "$good" "$work/patched"
    patch "$work/patched" "$1" "$2"
    bad "$work/patched" "${3-}"
}

bad "$work/nowhere" "No such file"
bad "$work"
: >"$work/empty" && bad "$work/empty"
echo 'int main(void) { return 0; }' >"$work/text" && bad "$work/text" "not an ELF"
printf '\177ELF' >"$work/magic" && bad "$work/magic"
printf '#!/bin/sh\n' >"$work/script" && bad "$work/script" "not an ELF"
mkfifo "$work/fifo" && bad "$work/fifo"
bad /dev/null
bad /dev/zero
ln -s loop "$work/loop" && bad "$work/loop"
ln -s "$good" "$work/link" && expect 0 "$RACE" show "$work/link"
printf 'x' >"$work/$(printf 'new\nline')" && expect_error "$RACE" show "$work/$(printf 'new\nline')"
cp "$good" "$work/secret" && chmod 0 "$work/secret"
[ -r "$work/secret" ] || bad "$work/secret" "Permission denied"

# The header: class, byte order, version, type, machine.
patched 4 01 32-bit
patched 4 07
patched 5 02
patched 6 09
patched 16 0400 core
patched 16 ffff
patched 18 b700 architecture
patched 18 2800 architecture

# Tables that lie elsewhere, are too many, or have entries of another size.
patched 32 ffffffffffffff7f
patched 40 ffffffffffffffff
patched 40 0000000000010000
patched 56 fffe
patched 60 fffe
patched 54 0100
patched 58 0300

# Sections that claim too much, lie beyond the end, or overlap. Section i has its header at e_shoff + 64 i: type at 4,
# address at 16, offset at 24, size at 32.
headers=$(number_at "$good" 40 8)
count=$(number_at "$good" 60 2)
text=
for i in $(seq 1 $((count - 1))); do
    at=$((headers + 64 * i))
    [ "$(number_at "$good" $((at + 4)) 4)" = 1 ] || continue # SHT_PROGBITS
    patched $((at + 32)) ffffffffffffff7f
    patched $((at + 32)) 0000000001000000
    patched $((at + 24)) ffffffffffff0000
    # What does not change the file's layout may be harmless, but must not crash.
    cp "$good" "$work/patched"
    patch "$work/patched" $((at + 16)) ffffffffffffffff
    bad "$work/patched"
    size=$(number_at "$good" $((at + 32)) 8)
    if [ -n "$text" ] && [ "$size" -gt 8 ]; then
        cp "$good" "$work/patched"
        dd if="$good" of="$work/patched" bs=1 skip=$((text + 24)) seek=$((at + 24)) count=8 conv=notrunc 2>/dev/null
        bad "$work/patched" overlap
    fi
    [ "$size" -le 64 ] || text=$at
done

# Cut at many lengths: the section headers are at the end, so that every cut is one that matters.
size=$(wc -c <"$good")
for length in 1 3 4 5 15 16 17 52 63 64 65 120 500 1000 4095 4096 4097 $((size / 2)) $((headers - 1)) "$headers" \
    $((headers + 64)) $((size - 1)); do
    [ "$length" -lt "$size" ] || continue
    head -c "$length" "$good" >"$work/cut"
    bad "$work/cut"
done

# A file that is there is shown though another one is not.
expect 2 "$RACE" show "$good" "$work/empty" "$work/magic"
has "instructions"
[ "$(wc -l <"$work/err")" = 2 ] || fail "two bad files of three: $(cat "$work/err")"

# Archives.
printf '!<arch>\n' >"$work/none.a" && bad "$work/none.a"
{ printf '!<arch>\n'; head -c 40 /dev/zero; } >"$work/zero.a" && bad "$work/zero.a"
printf '!<arch>\n%-16s%-12s%-6s%-6s%-8s%-10s`\ny\n' x/ 0 0 0 644 9999999999 >"$work/huge.a" && bad "$work/huge.a"
printf '!<thin>\n' >"$work/thin.a" && bad "$work/thin.a"
finish
