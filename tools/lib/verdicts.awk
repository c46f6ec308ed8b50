# Reads the JUnit report of ctest and prints one line per test: verdict, name and, for a skipped one, the last line that
# it printed, which is the reason. mawk and gawk.

function attribute(line, name) {
    if (!match(line, " " name "=\"[^\"]*\"")) return ""
    return unescape(substr(line, RSTART + length(name) + 3, RLENGTH - length(name) - 4))
}

function unescape(text) {
    gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text); gsub(/&apos;/, "'", text)
    gsub(/&#x[0-9A-Fa-f]+;/, " ", text); gsub(/&amp;/, "\\&", text)
    return text
}

/<testcase / { name = attribute($0, "name"); status = attribute($0, "status"); last = ""; inside = 0; skipped = 0 }
/<skipped/   { skipped = attribute($0, "message") ~ /SKIP_/ } # an executable that is not there is none
/<system-out>/ { inside = 1; sub(/.*<system-out>/, "") }
inside {
    line = $0
    ended = sub(/<\/system-out>.*/, "", line)
    if (line ~ /[^ \t]/) last = line
    if (ended) inside = 0
}
/<\/testcase>/ {
    verdict = status == "run" ? "passed" : skipped || status == "disabled" ? "skipped" : "failed"
    gsub(/\t/, " ", last)
    printf "%s\t%s\t%s\n", verdict, name, verdict == "skipped" ? unescape(last) : ""
}
