# A client for a memcached on a unix socket, or with --redis for a redis-server: four connections at once that store,
# fetch, change and remove, memcached in both of its protocols. Waits until the server is there; exit 0: it answered
# everything.
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


def line(f, end=b"\r\n"):
    text = f.readline()
    if not text.endswith(b"\n"):
        raise OSError("the server is gone")
    if not text.endswith(end):
        raise OSError("a line ends in the middle: %r" % text[-100:])
    return text[:-2]


def memcached(n):
    f = connect()

    def ask(command, last=None, end=b"\r\n"):
        f.write(command + b"\r\n")
        f.flush()
        while last and line(f, end) != last:
            pass
        return None if last else line(f)

    for i in range(60):
        value = (b"%d-%d" % (n, i)) * (1 + i * 7 % 300)
        ask(b"set k%d 0 0 %d\r\n%s" % (i, len(value), value))
        ask(b"get k%d k%d" % (i, i // 2), b"END")
    for what in b"", b" items", b" slabs", b" sizes", b" settings":
        ask(b"stats" + what, b"END")
    # memcached 1.6.18 has room for 25 characters of the path that it listens on; behind more it prints what its stack holds,
    # until a zero. That may be the end of a line.
    ask(b"stats conns", b"END", b"\n")
    for command in (b"incr k1 1", b"delete k2", b"touch k3 10", b"add n%d 0 0 1\r\n5" % n, b"incr n%d 4" % n,
                    b"append n%d 0 0 1\r\n7" % n, b"prepend n%d 0 0 1\r\n7" % n, b"replace k5 0 0 1\r\n1",
                    b"decr k5 1", b"version", b"verbosity 0", b"ms k6 2\r\nab", b"mg nothing v", b"md k6", b"mn",
                    b"nonsense"):
        ask(command)
    ask(b"gat 10 k4", b"END")
    ask(b"gets k7", b"END")
    large = b"x" * 700000 # in several chunks
    ask(b"set large%d 0 0 %d\r\n%s" % (n, len(large), large))
    ask(b"get large%d" % n, b"END")
    ask(b"append large%d 0 0 3\r\nabc" % n)
    for command in (b"cas k7 0 0 1 1\r\na", b"mg k8 t f s k O12", b"mg k9 N30 t", b"ms k10 S3 T20 F5\r\nabc",
                    b"ms k11 2 MA\r\nab", b"ma n%d N0 J5 D3 v" % n, b"me k8", b"slabs automove 1", b"slabs reassign 1 2",
                    b"lru mode segmented", b"lru tune 10 20 0.1 2.0", b"lru_crawler enable", b"lru_crawler crawl all",
                    b"cache_memlimit 64", b"set k12 0 -1 1\r\na", b"touch none 1",
                    b"gat 10", b"shutdown now"):
        ask(command)
    ask(b"lru_crawler metadump all", b"END") if n == 1 else None
    binary(n)
    if n == 3:
        ask(b"flush_all")


# The binary protocol: operation, extras, key, value; until the answer to the last one.
def binary(n):
    f = connect()
    four, eight = bytes(4), bytes(8)

    def send(operation, extras=b"", key=b"", value=b""):
        body = extras + key + value
        f.write(b"\x80" + bytes([operation]) + len(key).to_bytes(2, "big") + bytes([len(extras)]) + bytes(3) +
                len(body).to_bytes(4, "big") + four + eight + body)

    for i in range(20):
        send(1, eight, b"b%d" % i, b"value" * (i + 1))
        send(0, b"", b"b%d" % i)
        send(0x0c, b"", b"b%d" % (i // 2))
    send(2, eight, b"b1", b"again")
    send(3, eight, b"b2", b"again")
    send(5, eight + b"\0" * 7 + b"\x05" + four, b"count%d" % n)
    send(5, b"\0" * 7 + b"\x01" + eight + four, b"count%d" % n)
    send(6, b"\0" * 7 + b"\x01" + eight + four, b"count%d" % n)
    send(0x0e, b"", b"b3", b"behind")
    send(0x0f, b"", b"b3", b"before")
    send(0x1c, four, b"b4")
    send(0x1d, four, b"b5")
    send(0x09, b"", b"none")
    send(0x0d, b"", b"none")
    send(4, b"", b"b6")
    send(0x0b)
    send(0x10)
    send(0x0a)
    send(7)
    f.flush()
    while True:
        head = f.read(24)
        if len(head) < 24:
            raise OSError("the server is gone")
        f.read(int.from_bytes(head[8:12], "big"))
        if head[1] == 7:
            return


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
        failures.append("connection %d: %s" % (n, problem))


threads = [threading.Thread(target=talk, args=(n,)) for n in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
sys.exit(str(failures[0]) if failures else 0)
