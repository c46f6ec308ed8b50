# Shell functions of the tools that measure the pointer analysis; sourced, with $corpus set (may be empty).

# programs_default WORD...: sets the array `programs` to NAME=FILE for each of these programs of $corpus (made by
# tools/lib/get-corpus); a program that is not there is taken from the system, under its own name.
programs_default() {
    local word name file
    for word in "$@"; do
        name=${word%-O*}
        for file in ${corpus:+"$corpus/debug/$word" "$corpus/debug/$word.so" "$corpus/$word"} "/usr/bin/$name" "/usr/bin/$name-server" \
            "/usr/bin/${name}5.4" "/usr/lib/x86_64-linux-gnu/$name.so.0"; do
            [ -f "$file" ] || continue
            case $file in "$corpus"/*) [ -z "$corpus" ] || name=$word ;; esac
            programs+=("$name=$file")
            continue 2
        done
        echo "$word is neither in the corpus nor installed" >&2
    done
}
