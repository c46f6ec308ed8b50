# The tables of tools/bench, from its results: name, tool, size, CPU seconds, seconds, KB, exit code. Given: `tools`,
# the names of the contenders; `size`, of the runs of those that are not slow; `json`, a file for all figures, or nothing.

function base_of(tool) { return tool == "clang-tsan" ? "clang" : "native" }
function size_of(tool) { return tool ~ /^(helgrind|drd|dynamorio|all)$/ ? "tiny" : size }
function key(name, tool, of) { return name SUBSEP tool SUBSEP of }

# How many times the native run's; 0: not known.
function ratio(what, name, tool,    of, mine, base) {
    of = size_of(tool)
    mine = key(name, tool, of)
    base = key(name, base_of(tool), of)
    if (!(mine in code) || code[mine] !~ /^(0|66)$/ || !(base in code)) return 0
    if (what == "cpu") return cpu[base] > 0 ? cpu[mine] / cpu[base] : 0
    return kb[base] > 0 ? kb[mine] / kb[base] : 0
}

function table(what, title,    i, j, r, line, n, sum, count) {
    printf "\n%-22s", title
    for (j = 1; j <= tool_count; j++) printf "%12s", tool_name[j]
    printf "\n"
    for (i = 1; i <= name_count; i++) {
        printf "%-22s", names[i]
        for (j = 1; j <= tool_count; j++) {
            r = ratio(what, names[i], tool_name[j])
            printf (r ? "%12.2f" : "%12s"), (r ? r : "-")
            if (r) { sum[j] += log(r); count[j]++ }
        }
        printf "\n"
    }
    printf "%-22s", "geometric mean"
    for (j = 1; j <= tool_count; j++) {
        r = count[j] ? exp(sum[j] / count[j]) : 0
        mean[what, tool_name[j]] = r
        printf (r ? "%12.2f" : "%12s"), (r ? r : "-")
    }
    printf "\n"
}

function write_json(    i, j, t, k, first) {
    printf "{ \"version\": 1, \"means\": {" >json
    for (j = 1; j <= tool_count; j++)
        printf "%s \"%s\": { \"cpu\": %.3f, \"memory\": %.3f }", (j > 1 ? "," : ""), tool_name[j],
            mean["cpu", tool_name[j]], mean["memory", tool_name[j]] >json
    printf " },\n  \"runs\": [" >json
    for (i = 1; i <= key_count; i++) {
        split(keys[i], k, SUBSEP)
        printf "%s\n    { \"program\": \"%s\", \"tool\": \"%s\", \"size\": \"%s\", ", (i > 1 ? "," : ""), k[1], k[2], k[3] >json
        printf "\"cpu_seconds\": %.6f, \"kb\": %d, \"exit_code\": %d }", cpu[keys[i]], kb[keys[i]], code[keys[i]] >json
    }
    printf "\n  ] }\n" >json
    close(json)
}

/^#/ { next }
{
    k = key($1, $2, $3)
    if (!($1 in seen)) { seen[$1] = 1; names[++name_count] = $1 }
    if (!(k in code)) keys[++key_count] = k
    if (!(k in code) || $4 < cpu[k]) cpu[k] = $4
    if (!(k in code) || $6 < kb[k]) kb[k] = $6
    if (!(k in code) || code[k] ~ /^(0|66)$/) code[k] = $7
}
END {
    tool_count = split(tools, tool_name, " ")
    table("cpu", "CPU time, times native")
    table("memory", "peak memory, times")
    printf "\n%-22s%12s%12s%14s\n", "native", "CPU ms", "clang's", "memory KB"
    for (i = 1; i <= name_count; i++)
        printf "%-22s%12.1f%12.1f%14d\n", names[i], 1000 * cpu[key(names[i], "native", size)],
            1000 * cpu[key(names[i], "clang", size)], kb[key(names[i], "native", size)]
    if (json != "") write_json()
}
