# A little of everything that bash does, with a file to read; run under accesses.c by tools/pta-oracle.
file=$1
declare -A map
list=(1 2 3 "x y")
sum() {
    local n=$1
    [ "$n" -le 1 ] && { echo "$n"; return; }
    echo $(($(sum $((n - 1))) + n))
}
sum 6
for i in {1..40}; do
    map[k$i]=$i
    list+=("$i")
done
echo "${!map[@]}" | tr ' ' '\n' | sort | head -3
echo "${list[@]:2:3}" "${list[@]/1/Q}" "${#map[@]}"
while read -r line; do
    case $line in
    *static*) n=$((n + 1)) ;;
    *[0-9]*) digits=${line//[0-9]/#} ;;
    esac
done < <(head -100 "$file")
echo "$n" "${digits^^}"
trap 'echo bye' EXIT
assign() { eval "$1=\$2"; }
assign z 5
printf '%s %05d %q\n' "$z" 42 "a b"
[[ abc =~ (b)(c) ]] && echo "${BASH_REMATCH[1]}"
coproc cat
echo hi >&"${COPROC[1]}"
read -r back <&"${COPROC[0]}"
echo "$back"
kill "$COPROC_PID"
(cd / && pwd)
text=$(<"$file")
echo "${#text}" "${text:5:9}"
select q in a b; do break; done <<<1 2>/dev/null
while getopts ab: option -a -b 3; do echo "$option"; done
cat <<END
a{b,c}d $z $'x\ty' $q
END
exec 5>/dev/null
echo to >&5
wait
declare -p list | head -c 50
history
type sum
complete -W "a b" foo
compgen -W "ab ac" a
mapfile -t lines <"$file"
echo "${#lines[@]}"
