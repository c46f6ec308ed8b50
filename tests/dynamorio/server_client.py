# A client for a memcached on a unix socket, or with --redis for a redis-server: four connections at once that store,
# fetch, change and remove. Waits until the server is there; exit 0: it answered everything.
import socket
import sys
import threading
import time

path = sys.argv[-1]
failures = []


def connect():
    for _ in range(600):
        try:
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            return s.makefile("rwb")
        except OSError:
            time.sleep(0.1)
    raise OSError("no server")


def line(f):
    text = f.readline()
    if not text.endswith(b"\r\n"):
        raise OSError("the server is gone")
    return text[:-2]


def memcached(n):
    f = connect()

    def ask(command, last=None):
        f.write(command + b"\r\n")
        f.flush()
        while last and line(f) != last:
            pass
        return None if last else line(f)

    for i in range(60):
        value = (b"%d-%d" % (n, i)) * (1 + i * 7 % 300)
        ask(b"set k%d 0 0 %d\r\n%s" % (i, len(value), value))
        ask(b"get k%d k%d" % (i, i // 2), b"END")
    for what in b"", b" items", b" slabs", b" sizes", b" settings", b" conns":
        ask(b"stats" + what, b"END")
    for command in (b"incr k1 1", b"delete k2", b"touch k3 10", b"add n%d 0 0 1\r\n5" % n, b"incr n%d 4" % n,
                    b"append n%d 0 0 1\r\n7" % n, b"prepend n%d 0 0 1\r\n7" % n, b"replace k5 0 0 1\r\n1",
                    b"decr k5 1", b"version", b"verbosity 0", b"ms k6 2\r\nab", b"mg nothing v", b"md k6", b"mn",
                    b"nonsense"):
        ask(command)
    ask(b"gat 10 k4", b"END")
    ask(b"gets k7", b"END")
    if n == 3:
        ask(b"flush_all")


def reply(f):
    head = line(f)
    if head[:1] == b"$" and head != b"$-1":
        f.read(int(head[1:]) + 2)
    elif head[:1] == b"*":
        for _ in range(max(0, int(head[1:]))):
            reply(f)


def redis(n):
    f = connect()

    def ask(text):
        parts = text.split()
        f.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        f.flush()
        reply(f)

    for i in range(60):
        for command in (b"set k%d %s" % (i, b"v" * (1 + i * 7 % 300)), b"get k%d" % i, b"lpush list %d" % i,
                        b"sadd set %d x%d" % (i, i), b"zadd sorted %d m%d" % (i, i), b"hset hash f%d %d" % (i, i),
                        b"incr count", b"append text ab", b"expire k%d 100" % i, b"pfadd log %d" % i,
                        b"xadd stream * a %d" % i):
            ask(command)
    for command in (b"lrange list 0 -1", b"smembers set", b"zrange sorted 0 -1 withscores", b"hgetall hash", b"info",
                    b"sort list", b"keys *", b"scan 0", b"type set", b"dbsize", b"ttl k1", b"del k1 k2", b"multi",
                    b"incr count", b"exec", b"config get save", b"client list", b"object encoding list", b"nonsense",
                    b"eval return{redis.call('get','count'),KEYS[1]} 1 k3", b"zrangebyscore sorted 3 9", b"sinter set",
                    b"lpop list", b"xrange stream - +", b"pfcount log", b"getrange text 0 5", b"unlink k5"):
        ask(command)


def talk(n):
    try:
        (redis if "--redis" in sys.argv else memcached)(n)
    except OSError as problem:
        failures.append(problem)


threads = [threading.Thread(target=talk, args=(n,)) for n in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
sys.exit(str(failures[0]) if failures else 0)
