# A little of everything that gawk does; run under accesses.c by tools/pta-oracle.
function fill(n,  a, i)
{
    for (i = 0; i < n; i++) a[i % 7, i] = "x" i
    delete a[3, 3]
    return length(a)
}
BEGIN {
    FS = "[ (,;]+"
    print fill(200)
    while (("echo a b; echo c" | getline line) > 0) print line
    close("echo a b; echo c")
}
{
    for (i = 1; i <= NF; i++) {
        seen[$i]++
        s = s substr($i, 2, 3)
        gsub(/[a-e]+/, "<&>", s)
        if (length(s) > 400) s = ""
    }
}
/static/ {
    kept[++n] = gensub(/(.*)static(.*)/, "\\2\\1", "g")
    match($0, /([a-z]+)_([a-z]+)/, part)
    tree[part[1]][part[2]]++
}
END {
    k = asorti(seen, sorted)
    for (i = 1; i <= 20 && i <= k; i++) printf "%s %d %05.2f\n", sorted[i], seen[sorted[i]], i / 3
    print toupper(s), n, strftime("%Y", 0), sprintf("%c%x%e", 65, 255, 1.5)
    name = "fill"
    print @name(10)
    split("a:b:c", word, ":")
    print word[3]
    print length(tree) | "cat"
    printf "%s\n", strtonum("0x1f") > "/dev/stderr"
}
