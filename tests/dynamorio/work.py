# A little of everything that Python's interpreter and the modules built into it do; run under edges.c by
# tools/eval-jumptables.
import ast, asyncio, base64, collections, csv, dataclasses, datetime, decimal, dis, fractions, functools, hashlib, heapq
import io, itertools, json, math, pickle, queue, random, re, statistics, string, struct, textwrap, threading, zlib


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: float = 0.5


class Meta(type):
    def __new__(cls, name, bases, body):
        return super().__new__(cls, name, bases, body)


class Thing(metaclass=Meta):
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v

    def __getattr__(self, name):
        return name

    def __eq__(self, other):
        return self.v == other.v

    def __hash__(self):
        return hash(self.v)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return True


def squares(n):
    for i in range(n):
        try:
            yield i * i
        finally:
            pass


async def twice(n):
    await asyncio.sleep(0)
    return n * 2


async def main():
    return await asyncio.gather(*(twice(i) for i in range(5)))


print(sorted([Point(3), Point(1)]), json.loads(json.dumps({"a": [1, 2.5, None, True, "\u00e9"]})))
print(re.sub(r"(\w+)@(\w+)", r"\2 at \1", "me@home you@work"), re.findall(r"(?i)[a-f]+\d{2,}?", "abc123 DEF45"))
print(re.split(r"\s*[,;]\s*", "a , b;c"), re.match(r"(?P<k>\w+)(?=\d)|(?<!x)y+?", "ab1").group("k"))
print(sum(squares(100)), list(itertools.permutations(range(3))), functools.reduce(lambda a, b: a * b, range(1, 20)))
print(2**200 % 97, -7 // 2, 7.5 // 2, divmod(17, 5), 0x10 | 3 & ~1 ^ 5, 1 << 70 >> 3, 3 + 4j, abs(-3.2), round(2.567, 2))
print(b"abc" + b"d", f"{3.14159:>10.3f}|{255:#x}|{'a':^5}", "%s %05d %r" % ("a", 42, "b"), "{:,}".format(1234567))
print(decimal.Decimal("1.1") / 3, fractions.Fraction(1, 3) + 1, statistics.mean([1, 2, 3]), math.gcd(12, 18))
print(datetime.datetime(2020, 1, 1) + datetime.timedelta(days=40), hashlib.sha256(b"x").hexdigest()[:8])
print(struct.unpack("<IhB", struct.pack("<IhB", 1, 2, 3)), zlib.decompress(zlib.compress(b"a" * 1000))[:3])
print(base64.b64encode(b"hello"), pickle.loads(pickle.dumps({1: {2, 3}})), list(csv.reader(io.StringIO('a,"b,c"\n1,2'))))
print(asyncio.run(main()))
results = queue.Queue()
threads = [threading.Thread(target=lambda i=i: results.put(i * i)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(results.queue))
with Thing(1) as thing:
    raise ValueError("x")
match {"k": [1, 2, {"z": 3}]}:
    case {"k": [1, *rest]} if len(rest) == 2:
        print("match", rest)
    case _:
        print("no")
try:
    try:
        1 / 0
    except ZeroDivisionError as e:
        raise KeyError("y") from e
except* KeyError as group:
    print(group.exceptions)
print(thing.foo, Thing(2) == Thing(2), len({Thing(3), Thing(3)}), ast.dump(ast.parse("x=1+y[2:3]"))[:60])
print(textwrap.fill("lorem ipsum " * 10, 40)[:50], heapq.nsmallest(2, [5, 1, 4]), "a,b".split(","), "abc"[::-1])
print([*range(5)][1:4:2], {**{"a": 1}, "b": 2}, any([0, 1]), chr(8364), bin(10), sorted("hello", key=lambda c: -ord(c)))
exec(compile("def f(a, /, b, *, c=3, **k): return a + b + c\nprint(f(1, 2, c=4, z=1))", "<s>", "exec"))
x = 0
while x < 10:
    x += 1
    if x == 3:
        continue
    if x == 7:
        break
else:
    print("never")
del x
counter = collections.Counter("abracadabra")
print(counter.most_common(2), string.Template("$a").substitute(a=1), random.Random(1).random() < 1, 1 < 2 < 3, "a" in "abc")
dis.dis(squares, file=io.StringIO())
