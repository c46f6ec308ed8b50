# The sources of Debian packages; sourced by the scripts that need them.

# debian_source PACKAGE: downloads it into the current folder, with lists of sources that are those of the system for
# packages, whether or not it has any for sources. The lists are kept in the folder apt.
debian_source() {
    local lists=$PWD/apt file
    set -- "$1" -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$lists/parts" -o "Dir::State::lists=$lists/lists"
    if [ ! -d "$lists" ]; then
        mkdir -p "$lists/parts" "$lists/lists/partial"
        for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
            [ ! -f "$file" ] || sed -E 's/^Types:.*/Types: deb-src/; s/^deb(-src)? /deb-src /' "$file" >"$lists/parts/${file##*/}"
        done
        apt-get "${@:2}" update
    fi
    apt-get "${@:2}" source --download-only "$1"
}
