# Shell functions that tools/demo and tools/test share; sourced, with $root set to the top of the repository.
#
# Everything is made in $root/build: the release build in build/, the sanitized one in build/sanitize, Unity's sources
# in build/unity. Nothing outside is touched, except that missing packages are installed by apt-get.

say() { printf '\n== %s\n' "$*"; }
die() { printf 'race: %s\n' "$*" >&2; exit 2; }

jobs=$(nproc 2>/dev/null || echo 2)

# has_header COMPILER HEADER: the header is found and preprocesses.
has_header() { echo "#include <$2>" | "$1" -E -x c - >/dev/null 2>&1; }

# missing_packages NEED...: the packages of tools/lib/packages with one of these needs whose probe fails.
missing_packages() {
    grep -v '^#' "$root/tools/lib/packages" | while read -r package kind what need; do
        case " $* " in *" $need "*) ;; *) continue ;; esac
        case $kind in
        command) command -v "$what" >/dev/null || printf '%s ' "$package" ;;
        *) has_header "$kind" "$what" || printf '%s ' "$package" ;;
        esac
    done
}

# cannot_install: says why packages cannot be installed; fails when they can.
cannot_install() {
    if ! command -v apt-get >/dev/null; then
        echo "there is no apt-get"
    elif [ "$(id -u)" != 0 ] && ! { command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }; then
        echo "neither root nor sudo"
    else
        return 1
    fi
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# apt_install PACKAGE...: quiet when it goes well; its output is in build/install.log.
apt_install() {
    {
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update || true
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends \
            install "$@"
    } >>"$root/build/install.log" 2>&1
}

# need NEED...: installs what is missing of these; what still is missing afterwards ends the script when it is needed
# for the build, and is said in a line otherwise.
need() {
    mkdir -p "$root/build"
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if ! why=$(cannot_install); then
        say "installing ${missing% }"
        # All at once; if that fails, at least what the build needs.
        # shellcheck disable=SC2046,SC2086
        apt_install $missing || apt_install $(missing_packages build) || true
        why="apt-get failed, see build/install.log"
    fi
    missing=$(missing_packages "$@")
    [ -z "$(missing_packages build)" ] || die "missing packages: ${missing% } (not installed: $why)"
    [ -z "$missing" ] || echo "race: missing packages: ${missing% } (not installed: $why); some tests are skipped"
}

# need_unity: an installed Unity, Debian's package cmock, or the sources that get-unity fetches. Not having it is not
# the end: the unit tests are then skipped and say so.
need_unity() {
    for file in /usr/share/cmock/vendor/unity/src/unity.c /usr/include/unity/unity.h /usr/include/unity.h \
        /usr/local/include/unity/unity.h /usr/local/include/unity.h; do
        [ ! -e "$file" ] || return 0
    done
    [ ! -e "$root/build/unity/src/unity.c" ] || return 0
    say "fetching Unity, the unit test framework"
    if apt-cache show cmock >/dev/null 2>&1 && ! cannot_install >/dev/null && apt_install cmock; then return 0; fi
    "$root/tools/lib/get-unity" "$root/build/unity" || true
}

# build DIR TYPE TARGET [CMAKE-ARGUMENT...]: configures and builds; the compilers' output is shown when it fails. What
# the configuration found, and what it leaves out for want of something, is shown when $notes is set.
build() {
    dir=$1 type=$2 target=$3
    shift 3
    # A tree that was copied or moved has caches that name the old place.
    if [ -f "$dir/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
        rm -rf "$dir/CMakeCache.txt" "$dir/CMakeFiles"
    fi
    mkdir -p "$dir"
    say "building ($type, in ${dir#"$root"/})"
    cmake -S "$root" -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE="$type" "$@" >"$dir/configure.log" 2>&1 || {
        tail -30 "$dir/configure.log" >&2
        die "configuring failed, see ${dir#"$root"/}/configure.log"
    }
    [ -z "${notes-}" ] || sed -n 's/^-- race:/race:/p' "$dir/configure.log"
    cmake --build "$dir" --parallel "$jobs" --target "$target" >"$dir/build.log" 2>&1 || {
        grep -vE '^\[[0-9]+/[0-9]+\]' "$dir/build.log" | tail -40 >&2
        die "building failed, see ${dir#"$root"/}/build.log"
    }
}
