# What a program of cases printed against what was reported: each wrong case once, no right one. Prints a line for each that is not as
# it should be, but for the exceptions.
#   awk -v engine=NAME -f compare.awk exceptions PRINTED REPORTED
FNR == 1 { file++ } # none of them is empty
file == 1 { if ($2 == "wrong" && $3 == engine) excepted[$1] = 1; next }
file == 2 { if ($1 == "wrong" && !($2 in excepted)) wanted[$3 " " $4 " " $5] = 1; next }
/^WARNING: race: / { names = " "; is_side = 1; block = "" }
/^  Location is heap block of size / { block = "block" }
/^  (Location|Thread|As if) / || /^$/ && names == " " { is_side = 0 }
is_side && /^    #[0-9]/ { names = names $2 " " }
/^SUMMARY: / {
    is_side = 0
    is_meant = names ~ / [^ ]*_wrong(_[a-z]+)? /
    for (pair in wanted) {
        split(pair, name, " ")
        if (index(names, " " name[1] " ") && index(names, " " name[2] " ") && (!name[3] || block)) wanted[pair] = 2
    }
    if (!is_meant) print "reported, although right:" names
}
END { for (pair in wanted) if (wanted[pair] == 1) print "not reported: " pair }
