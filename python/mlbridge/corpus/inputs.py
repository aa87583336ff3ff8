# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the programs are run on: drawn from a seed, and so the same everywhere."""

import random
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 20260101


def text(path: Path, megabytes: float) -> None:
    """Prose-like text: words by Zipf's law, in lines, with numbers here and there."""
    draw = np.random.default_rng(SEED)
    letters = np.frombuffer(b"etaoinshrdlcumwfgypbvkjxqz", np.uint8)
    words = [
        bytes(letters[np.minimum(draw.geometric(0.12, size) - 1, 25)])
        for size in draw.integers(2, 11, 8000)
    ]
    with path.open("wb") as file:
        left = int(megabytes * 1e6)
        while left > 0:
            ranks = np.minimum(draw.zipf(1.2, 20_000) - 1, len(words) - 1)
            breaks = draw.integers(0, 12, 20_000)
            block = b"".join(
                words[rank]
                + (b"\n" if at == 0 else b" %d " % rank if at == 1 else b" ")
                for rank, at in zip(ranks.tolist(), breaks.tolist(), strict=True)
            )[:left]
            file.write(block)
            left -= len(block)


def _pixels(width: int, height: int) -> NDArray[np.uint8]:
    """Something between a photograph and noise, [height, width, 3]."""
    draw = np.random.default_rng(SEED)
    waves = draw.uniform(5.0, 200.0, (3, 3))
    planes = np.empty((height, width, 3), np.uint8)
    # One after the other: all of a large picture as doubles would be a gigabyte.
    for number, (a, b, c) in enumerate(waves):
        rows = np.cos(np.arange(height) / b - c).astype(np.float32)
        columns = np.sin(np.arange(width) / a + c).astype(np.float32)
        plane = 128 + 90 * np.outer(rows, columns)
        plane += draw.integers(-9, 10, plane.shape, np.int8)
        planes[..., number] = np.clip(plane, 0, 255)
    return planes


def ppm(path: Path, width: int, height: int) -> None:
    """A picture as a portable pixmap."""
    header = b"P6 %d %d 255\n" % (width, height)
    path.write_bytes(header + _pixels(width, height).tobytes())


def png(path: Path, width: int, height: int) -> None:
    """A picture as PNG, each of its lines filtered in another way."""
    rows = _pixels(width, height).astype(np.int64)
    left = np.pad(rows, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    above = np.pad(rows, ((1, 0), (0, 0), (0, 0)))[:-1]
    guesses = (np.zeros_like(rows), left, above, (left + above) // 2)
    lines = []
    for y in range(height):
        line = (rows[y] - guesses[y % 4][y]).astype(np.uint8)
        lines.append(bytes([y % 4]) + line.tobytes())

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"".join(lines), 6))
        + chunk(b"IEND", b"")
    )


def satisfiability(path: Path, variables: int, ratio: float) -> None:
    """Random 3-SAT; near a ratio of 4.26 clauses a variable it is the hardest."""
    draw = random.Random(SEED)
    clauses = round(variables * ratio)
    with path.open("w", encoding="ascii") as file:
        file.write(f"p cnf {variables} {clauses}\n")
        for _ in range(clauses):
            three = draw.sample(range(1, variables + 1), 3)
            signed = [v if draw.random() < 0.5 else -v for v in three]
            file.write(" ".join(map(str, signed)) + " 0\n")


def c_source(path: Path, functions: int) -> None:
    """A C file of many small functions, all of which ``main`` calls."""
    draw = random.Random(SEED)
    with path.open("w", encoding="ascii") as file:
        for n in range(functions):
            a, b, c = (draw.randrange(1, 1000) for _ in range(3))
            file.write(
                f"struct s{n} {{ int x, y; struct s{n} *next;"
                f" double d[{1 + a % 9}]; }};\n"
                f"static int f{n}(struct s{n} *p, int i) {{\n"
                f"  int sum = {a};\n"
                f"  for (; p && i < {b}; ++i, p = p->next) {{\n"
                f"    switch ((p->x ^ i) % 5) {{\n"
                f"    case 0: sum += p->y * {c}; break;\n"
                f"    case 1: sum -= (int)p->d[i % {1 + a % 9}]; break;\n"
                f"    case 2: if (sum > {b}) return sum << 1; break;\n"
                f"    default: sum ^= i + {a};\n    }}\n  }}\n"
                f"  return sum;\n}}\n"
            )
        file.write("int main(void) {\n  int sum = 0;\n")
        file.writelines(f"  sum += f{n}(0, {n});\n" for n in range(functions))
        file.write("  return sum & 1;\n}\n")


LUA = """
for round = 1, ROUNDS do
local function fibonacci(n) if n < 2 then return n end
  return fibonacci(n - 1) + fibonacci(n - 2) end
print(fibonacci(31 + round % 2))
local body = {}
for i = 1, 200000 do body[i] = (i * 7919) % 100003 end
table.sort(body)
print(body[1], body[#body // 2], body[#body])
local words, text = {}, {}
for i = 1, 60000 do text[i] = "w" .. (i * i) % 5003 end
for word in table.concat(text, " "):gmatch("%a%d+") do
  words[word] = (words[word] or 0) + 1 end
local total = 0
for word, count in pairs(words) do total = total + #word * count end
print(total, (table.concat(text, ","):gsub("w1", "x"):len()))
local point = setmetatable({}, {__index = function(_, key) return #key end})
local sum = 0.0
for i = 1, 3000000 do sum = sum + (point.abc * i) % 7 / (1 + i & 3) end
print(string.format("%.6f", sum))
end
"""

AWK = """
{ for (i = 1; i <= NF; i++) { if ($i ~ /^[0-9]+$/) sum += $i; else count[$i]++ } }
/th+e|an[dy]/ { hits++; gsub(/e/, "E"); size += length($0) }
{ line = substr($0, 1, 20); n += split(line, parts, /[aeiou]/); up = toupper(line) }
END {
  n2 = asorti(count, keys)
  for (i = 1; i <= n2; i++)
    check = (check * 31 + count[keys[i]] * length(keys[i])) % 1000003
  printf "%d %d %d %d %d %s\\n", sum, hits, size, n, check, keys[1]
}
"""

SQL = """
CREATE TABLE item(id INTEGER PRIMARY KEY, grp INT, price INT, name TEXT);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 700000)
INSERT INTO item SELECT x, (x * 7919) % 1009, (x * x) % 10007,
  'item ' || ((x * 104729) % 65537) FROM c;
CREATE INDEX by_group ON item(grp);
CREATE INDEX by_name ON item(name);
SELECT grp, count(*), sum(price), max(name) FROM item
  GROUP BY grp ORDER BY 3 DESC LIMIT 5;
SELECT count(*), sum(a.price) FROM item a JOIN item b ON a.id = b.grp
  WHERE b.price % 3 = 1;
SELECT count(*) FROM item WHERE name LIKE '%77%' AND price BETWEEN 100 AND 5000;
UPDATE item SET price = price + grp WHERE id % 3 = 0;
DELETE FROM item WHERE grp IN
  (SELECT grp FROM item GROUP BY grp HAVING avg(price) > 5600);
SELECT count(*), sum(price), sum(length(name)) FROM item;
SELECT name, rank FROM (SELECT name,
  rank() OVER (PARTITION BY grp ORDER BY price, id) AS rank
  FROM item WHERE grp < 200) WHERE rank = 3 ORDER BY name, rank LIMIT 5;
"""
