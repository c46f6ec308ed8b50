# Reads the rows of tools/samples-run (tool, sample, compiler, options, runs, broken, marked, seen, alarms; lists of lines with
# commas, `-` for none) and prints its table. Rows of one program and tool from several files are taken together: what was
# seen in one of them was seen. mawk and gawk.

function is_ours(tool) { return tool == "probe" || tool == "dynamorio" }

# Adds the lines of a list to the set `set` under `key`.
function add(list, set, key,    n, i, part) {
    n = list == "-" ? 0 : split(list, part, ",")
    for (i = 1; i <= n; i++) set[key SUBSEP part[i]] = 1
}

{
    program = $2 SUBSEP $3 SUBSEP $4
    if (!($1 in tools)) { tools[$1] = 1; order[++tool_count] = $1 }
    if (!(program in programs)) { programs[program] = $7; list[++program_count] = program }
    if (!(($1, program) in did)) { did[$1, program] = 1; ran[$1]++ }
    broken[$1] += $6
    runs[$1] += $5
    add($8, seen, $1 SUBSEP program)
    add($9, alarms, $1 SUBSEP program)
}

END {
    for (key in alarms) {
        split(key, k, SUBSEP)
        alarm_lines[k[1]]++
        if (!((k[1], k[2], k[3], k[4]) in alarmed)) { alarmed[k[1], k[2], k[3], k[4]] = 1; alarm_programs[k[1]]++ }
        if (k[4] ~ /openmp/) alarm_openmp[k[1]]++
    }
    for (p = 1; p <= program_count; p++) {
        program = list[p]
        split(program, word, SUBSEP)
        n = programs[program] == "-" ? 0 : split(programs[program], line, ",")
        for (t = 1; t <= tool_count; t++) {
            tool = order[t]
            if (!((tool, program) in did)) continue
            found = 0
            for (i = 1; i <= n; i++) {
                marked[tool]++
                if ((tool, program, line[i]) in seen) { seen_lines[tool]++; found = 1 }
            }
            if (n) racy[tool]++
            found_programs[tool] += found
        }
        for (i = 1; i <= n; i++) {
            others = ours = all_ours = ""
            for (t = 1; t <= tool_count; t++) {
                if (!((order[t], program) in did)) continue
                saw = (order[t], program, line[i]) in seen
                if (!is_ours(order[t])) { if (saw) others = others " " order[t] }
                else if (saw) ours = ours " " order[t]
                else all_ours = all_ours " " order[t]
            }
            place = word[1] ":" line[i] " (" word[2] " " word[3] ")"
            if (others != "" && ours == "" && all_ours != "") only_others[++missed] = place ":" others
            if (ours != "" && all_ours != "") one_engine[++single] = place ":" ours
        }
    }
    printf "%-11s %8s %6s %7s %12s %9s %8s %7s %10s %7s %6s\n", "tool", "programs", "runs", "racy", "found", "lines",
        "seen", "recall", "precision", "alarms", "broken"
    for (t = 1; t <= tool_count; t++) {
        tool = order[t]
        all = seen_lines[tool] + alarm_lines[tool]
        printf "%-11s %8d %6d %7d %12d %9d %8d %6.1f%% %9.1f%% %7d %6d   alarms in %d programs, %d lines of them OpenMP\n", tool,
            ran[tool], runs[tool], racy[tool], found_programs[tool], marked[tool], seen_lines[tool],
            marked[tool] ? 100 * seen_lines[tool] / marked[tool] : 100, all ? 100 * seen_lines[tool] / all : 100, alarm_lines[tool],
            broken[tool], alarm_programs[tool], alarm_openmp[tool]
        if (is_ours(tool) && alarm_lines[tool] + broken[tool]) bad = 1
    }
    if (missed) print "\nseen by others only:"
    for (i = 1; i <= missed; i++) print "  " only_others[i]
    if (single) print "\nseen by one of our engines only:"
    for (i = 1; i <= single; i++) print "  " one_engine[i]
    exit bad
}
