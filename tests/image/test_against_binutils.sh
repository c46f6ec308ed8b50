#!/bin/sh
# What static/image says is what binutils say: symbols (nm), relocations and unwind tables (readelf), PLT stubs and
# instruction boundaries of landing pads (objdump), line tables (readelf) and inlined frames (LLVM's addr2line, where it
# is installed); over system binaries, the command itself and the sample matrix.
. "$RACE_SOURCE/tests/lib/check.sh"

dump="$RACE_TOOLS/imagedump"
[ -x "$dump" ] || skip "the test tools are not built"
for tool in nm readelf objdump; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done

# same WHAT FILE: $work/ours and $work/theirs hold the same lines in some order.
same() {
    checks=$((checks + 1))
    sort -u "$work/ours" >"$work/ours.sorted"
    sort -u "$work/theirs" >"$work/theirs.sorted"
    [ -s "$work/theirs.sorted" ] || [ ! -s "$work/ours.sorted" ] || fail "$1 of $2: binutils have none"
    cmp -s "$work/ours.sorted" "$work/theirs.sorted" ||
        fail "$1 of $2 differ: $(diff "$work/ours.sorted" "$work/theirs.sorted" | head -n 6)"
}

# The separate debug file that belongs to a stripped file, where distributions put it.
debug_file() {
    id=$(readelf -nW "$1" 2>/dev/null | sed -n 's/.*Build ID: //p' | head -n 1)
    rest=${id#??}
    [ -z "$id" ] || ls "/usr/lib/debug/.build-id/${id%"$rest"}/$rest.debug" 2>/dev/null
}

# Numbers (A, a) and what lies in sections that are not loaded (N, n) are no places: left out unless we have them too.
# Versions are cut off.
symbols() {
    "$dump" symbols "$1" >"$work/ours.all" || fail "imagedump symbols $1"
    { nm --defined-only "$1"; nm -D --defined-only "$1"; for file in $(debug_file "$1"); do nm --defined-only "$file"; done; } \
        2>/dev/null | awk 'NF == 3 { sub(/@.*/, "", $3); print $2, $1, $3 }' >"$work/nm"
    sed -n 's/^[AaNn] //p' "$work/nm" | sort -u >"$work/numbers"
    sed -n 's/^[^AaNn] //p' "$work/nm" | sort -u | comm -23 - "$work/numbers" >"$work/theirs"
    sort -u "$work/ours.all" | comm -23 - "$work/numbers" >"$work/ours"
    same symbols "$1"
}

# objdump names the stubs that are called; next to .plt.sec, those of .plt are only there to be bound lazily.
plts() {
    "$dump" plts "$1" >"$work/ours.all" || fail "imagedump plts $1"
    sections=$(readelf -SW "$1" 2>/dev/null | sed -n 's/^ *\[ *[0-9]*\] \(\.i*plt[a-z.]*\) .*/-j \1/p')
    [ -n "$sections" ] || return
    objdump -d $sections "$1" 2>/dev/null |
        sed -n 's/^\([0-9a-f]\{16\}\) <\(.*\)@plt>:$/\1 \2/p' | sed 's/@.* *$//' | sort -u >"$work/theirs"
    cut -d' ' -f1 "$work/theirs" >"$work/named"
    grep -F -f "$work/named" "$work/ours.all" >"$work/ours"
    [ -s "$work/named" ] || : >"$work/ours"
    same "PLT stubs" "$1"
}

relocations() {
    "$dump" relocs "$1" >"$work/ours.all" || fail "imagedump relocs $1"
    LC_ALL=C readelf -rW "$1" 2>/dev/null | awk '
        $3 == "R_X86_64_RELATIVE" { print $1, $4 }
        $3 == "R_X86_64_IRELATIVE" && $4 ~ /^[0-9a-f]+$/ { print $1, $4 }
        $3 ~ /^R_X86_64_(JUMP_SLOT?|GLOB_DAT|64|COPY)$/ { sub(/@.*/, "", $5); print $1, $5 }' >"$work/theirs"
    cut -d' ' -f1 "$work/theirs" | sort -u >"$work/addresses"
    awk 'NR == FNR { wanted[$1]; next } $1 in wanted' "$work/addresses" "$work/ours.all" >"$work/ours"
    same relocations "$1"
}

fdes() {
    "$dump" fdes "$1" >"$work/ours" || fail "imagedump fdes $1"
    LC_ALL=C readelf -wf "$1" 2>/dev/null |
        sed -n '/\.debug_frame/q; s/.* FDE .*pc=\([0-9a-f]*\)\.\.\([0-9a-f]*\)$/\1 \2/p' |
        awk '$1 "" != $2 ""' >"$work/theirs"
    same "FDE ranges" "$1"
}

# readelf leaves out FDEs without instructions, and registers that stay as they are show as u, like undefined ones.
rows() {
    "$dump" rows "$1" >"$work/ours.all" || fail "imagedump rows $1"
    LC_ALL=C readelf -wF "$1" 2>/dev/null | awk '
        /\.debug_frame section/ { exit }
        / FDE / { fde = 1; next } / CIE / { fde = 0; next }
        !fde { next }
        $1 == "LOC" { n = NF; for (i = 3; i <= NF; i++) name[i] = $i; next }
        $1 ~ /^[0-9a-f]+$/ && length($1) == 16 && NF == n {
            print $1, "cfa", $2
            for (i = 3; i <= n; i++) if ($i != "u") print $1, name[i], ($i ~ /^c[+-]/ ? $i : "exp")
            print $1 > seen
        }' seen="$work/seen" >"$work/theirs"
    [ -f "$work/seen" ] || : >"$work/seen"
    # Undefined is "exp" in ours and nothing in theirs.
    awk 'FILENAME == ARGV[1] { wanted[$1]; next } FILENAME == ARGV[2] { theirs[$0]; next }
        $1 in wanted && !($3 == "exp" && $2 != "cfa" && !($0 in theirs))' \
        "$work/seen" "$work/theirs" "$work/ours.all" >"$work/ours"
    same "unwind rows" "$1"
    rm -f "$work/seen"
}

# Call sites and landing pads begin and end between instructions.
pads() {
    "$dump" pads "$1" >"$work/ours" || fail "imagedump pads $1"
    [ -s "$work/ours" ] || return
    checks=$((checks + 1))
    objdump -d --no-show-raw-insn "$1" 2>/dev/null | awk '
        FILENAME == ARGV[1] { want[$1]; want[$2]; want[$3]; next }
        { sub(/:$/, "", $1); if ($1 in want) delete want[$1] }
        END { for (a in want) { print a; exit 1 } }' "$work/ours" - >"$work/inside" ||
        fail "pads of $1: $(head -n 1 "$work/inside") is no instruction"
}

# Rows of the line table: at each address the last one holds, except when its sequence ends there.
lines() {
    LC_ALL=C readelf -W -wL "$1" 2>/dev/null | awk '
        $3 !~ /^0x/ { next }
        $2 == "-" { delete row[$3]; for (i = 0; i < n; i++) if (sequence[i] != $3) print sequence[i], row[sequence[i]]; n = 0; next }
        { sub(/.*\//, "", $1); row[$3] = $1 ":" ($2 ? $2 : "?"); sequence[n++] = $3 }' | sort -u -k1,1 | awk '$1 != "0x0"' >"$work/theirs"
    cut -d' ' -f1 "$work/theirs" >"$work/addresses"
    "$dump" lines "$1" <"$work/addresses" | sed 's/.*\///' | paste -d' ' "$work/addresses" - >"$work/ours"
    same lines "$1"
}

# addr2line of binutils loses inlined frames and file names in DWARF 5, so LLVM's is asked. It prefers the symbol's name
# for the outermost frame: suffixes are cut, and names are not compared for C++.
frames() {
    [ -n "$addr2line" ] || return
    "$dump" fdes "$1" | awk '{ print $1 }' >"$work/starts"
    objdump -d --no-show-raw-insn -j .text "$1" 2>/dev/null |
        awk '/^ +[0-9a-f]+:/ && ++n % 7 == 0 && !/nop/ { sub(/:/, "", $1); printf "%16s\n", $1 }' | tr ' ' 0 >"$work/inside"
    sort -u "$work/starts" "$work/inside" | head -n 3000 >"$work/all"
    "$dump" lines "$1" <"$work/all" | paste -d' ' "$work/all" - | sed -n 's/ .*[^?]:[1-9][0-9]*$//p' >"$work/addresses"
    "$dump" frames "$1" <"$work/addresses" >"$work/ours.lines" || fail "imagedump frames $1"
    sed 's/^/0x/' "$work/addresses" | $addr2line -afi -e "$1" 2>/dev/null | sed 's/ (discriminator [0-9]*)$//' >"$work/theirs.lines"
    case $1,$source in *,*.cpp) names=0 ;; *) names=1 ;; esac
    for side in ours theirs; do # one line per address
        awk -v names="$names" '
            /^0x/ { if (line) print line; sub(/^0x0*/, ""); line = $0; name = 1; next }
            name { sub(/\..*/, ""); if (names) line = line " " $0; name = 0; next }
            { gsub(/\/\.\//, "/"); while (sub(/\/[^\/.][^\/]*\/\.\.\//, "/")); line = line " " $0; name = 1 }
            END { print line }' "$work/$side.lines" | grep ' ' | grep -vF ' ??' >"$work/$side" # no function: padding
    done
    same "inlined frames" "$1"
}

addr2line=$(command -v llvm-addr2line || ls /usr/bin/llvm-addr2line-* 2>/dev/null | head -n 1)
source=
system=$(for name in ls sh bash perl python3 git gdb gcc ld awk; do command -v $name; done
         ldd "$RACE" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p'
         for name in libstdc++.so.6 libgcc_s.so.1 ld-linux-x86-64.so.2 libm.so.6; do
             ls "/usr/lib/x86_64-linux-gnu/$name" "/lib64/$name" 2>/dev/null | head -n 1
         done)
for file in $(echo "$system" | xargs -n 1 readlink -f | sort -u) "$RACE"; do
    [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
    symbols "$file"
    plts "$file"
    relocations "$file"
    fdes "$file"
    rows "$file"
    pads "$file"
done
if [ -f "$RACE_MATRIX" ]; then
    tab=$(printf '\t')
    while IFS=$tab read -r program source compiler opt link debug stripped; do
        case $program,$link in '#'*) continue ;; *,object) continue ;; esac
        case $opt-$link-$source in # of the many rows, those that tell something new
            O2-pie-* | O2-shared-*.cpp | O[02]-*-struct_fields.c | O2-static-racy_counter.c) ;;
            *) continue ;;
        esac
        symbols "$program"
        plts "$program"
        relocations "$program"
        fdes "$program"
        rows "$program"
        pads "$program"
        [ "$debug" = none ] || [ "$link" = static ] || { lines "$program"; frames "$program"; }
    done <"$RACE_MATRIX"
fi
finish
