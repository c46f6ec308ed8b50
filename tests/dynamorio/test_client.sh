#!/usr/bin/env bash
# server_client.py, the load of the scripts that run servers: what a memcached may answer is no failure, what it may not is one. The
# server here only knows when an answer ends.
set -u
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

cat >"$work/server.py" <<'PYTHON'
import socket, sys, threading
wrong = {"": {}, # commands that get another answer than usually; None: the connection is closed
         "address": {b"stats conns": b"STAT 9:addr unix:/a/socket\n\r\nSTAT 9:state listen\r\nSTAT 8:addr unix:/a\x7f\na\r\nEND\r\n"},
         "line": {b"stats items": b"STAT items:1:number 1\nEND\r\n"},
         "reply": {b"version": b"VERSION\n"},
         "gone": {b"stats conns": None},
         "half": {b"stats conns": b"STAT 9:addr unix:/a/socket\n"}}[sys.argv[2]]
data = {b"set": 4, b"add": 4, b"append": 4, b"prepend": 4, b"replace": 4, b"cas": 4, b"ms": 2} # which word tells the length
lists = b"get", b"gets", b"gat", b"stats"

def answer(f):
    while True:
        first = f.read(1)
        if first == b"\x80":
            head = first + f.read(23)
            f.read(int.from_bytes(head[8:12], "big"))
            if head[1] == 7:
                f.write(b"\x81" + head[1:8] + bytes(16))
                return
            continue
        command = (first + f.readline()).strip()
        words = command.split() or [b""]
        if not first:
            return
        if words[0] in data and words[data[words[0]]].isdigit():
            f.read(int(words[data[words[0]]]) + 2)
        is_list = words[0] in lists and command != b"gat 10" or b"metadump" in command
        reply = wrong.get(command, b"END\r\n" if is_list else b"OK\r\n")
        if reply is None:
            return
        f.write(reply)
        f.flush()
        if is_list and not reply.endswith(b"END\r\n"):
            return

def serve(s):
    try:
        with s, s.makefile("rwb") as f:
            answer(f)
    except OSError: # the client has what it wanted
        pass

with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
PYTHON

failures=0
expect() { # WHAT EXIT-CODE [MESSAGE]
    local socket=$work/socket-$1 output code
    python3 "$work/server.py" "$socket" "$1" &
    server=$!
    output=$(timeout 60 python3 "$RACE_SOURCE/tests/dynamorio/server_client.py" "$socket" 2>&1)
    code=$?
    kill $server
    wait $server 2>/dev/null
    server=
    [ $code = "$2" ] && [[ $output == *"${3-}"* ]] && return
    echo "${1:-as usual}: exit code $code, expected $2 with '${3-}': $output"
    failures=$((failures + 1))
}

expect "" 0
expect address 0
expect line 1 "a line ends in the middle"
expect reply 1 "a line ends in the middle"
expect gone 1 "the server is gone"
expect half 1 "the server is gone"
[ $failures = 0 ]
