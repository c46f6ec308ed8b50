#!/bin/sh
# Debian's own programs, stripped, checked at every access of theirs and of the libraries they use: output and exit code
# are what they are without, nearly no site costs a trap, and none is left out.
# ctest: release only
. "$RACE_SOURCE/tests/lib/check.sh"

[ -f "$RACE_BUILD/librace_probe.so" ] || skip "no probe engine in this build"
cd "$work" || exit 1
mkdir plans

head -c 200000 "$RACE_BUILD/librace_probe.so" >input
cat >script.lua <<'END'
local words = {}
for i = 1, 3000 do words[i] = string.format("%05d", (i * 7919) % 10007) end
table.sort(words)
local co = coroutine.wrap(function() for i = 1, 100 do coroutine.yield(i * i) end end)
local sum = 0
for i = 1, 100 do sum = sum + co() end
print(#words, words[1], words[3000], sum, pcall(error, "caught"))
END
cat >script.py <<'END'
import hashlib, json, re, threading
total = []
def work(n): total.append(sum(i * i for i in range(n)))
threads = [threading.Thread(target=work, args=(1000 + i,)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(total), hashlib.sha256(b"x" * 1000).hexdigest(), json.dumps({"a": [1, 2.5, None]}), re.sub("a+", "b", "caaat"))
END

plan_of() { # PROGRAM: of it and of its libraries, each once
    for file in "$(readlink -f "$1")" $(ldd "$1" | awk '/=> \// { print $3 }'); do
        case $file in *libc.so* | *libpthread* | *ld-linux*) continue ;; esac
        grep -qx "$file" planned 2>/dev/null && continue
        echo "$file" >>planned
        "$RACE_TOOLS/makeplan" plans "$file" >"$work/made" 2>&1 || fail "$file: $(head -1 "$work/made")"
    done
}

# same NAME COMMAND...: both ways; `input` is there.
same() {
    name=$1
    shift
    program=$(command -v "$1") || { echo "no $1: not tried"; return; }
    plan_of "$program"
    timeout 60 "$@" >native 2>native.err </dev/null
    native=$?
    rm -rf logs && mkdir logs
    run env RACE_OPTIONS="-plan $work/plans -log $work/logs -exit_code 0 -quiet -stats" \
        LD_PRELOAD="$RACE_BUILD/librace_probe.so" "$@"
    checks=$((checks + 1))
    [ "$code" = "$native" ] || fail "$name: exit code $code instead of $native: $(tail -2 "$work/err")"
    cmp -s native "$work/out" || fail "$name: another output"
    # the injected, and of them by traps, over all processes of the command
    set -- $(cat logs/*.log | awk '/^race: probe: / { n[$NF] += $3; all += $3 } END { print all + 0, n["traps"] + 0, n["injected"] + 0 }')
    [ "$1" -gt 0 ] || fail "$name: no site was injected"
    [ $(($2 * 200)) -le "$1" ] || fail "$name: $2 of $1 sites are traps"
    [ "$3" = 0 ] || fail "$name: $3 sites are not injected"
    echo "$name: $1 sites, $2 of them by traps"
}

same "ls" ls -la /usr/lib
same "bash" bash -c 'for i in 1 2 3; do echo $((i * 7)); done | sort -r; x=$(echo sub | tr s S); echo "$x"; [[ abc =~ b ]] && printf "%s\n" yes'
same "lua" lua5.4 script.lua
same "python" /usr/bin/python3 script.py
same "pigz" pigz -p 2 -c input
same "xz" xz -T 2 -0 -c input
same "zstd" zstd -T2 -q -c input
same "pbzip2" pbzip2 -p2 -c input
finish
