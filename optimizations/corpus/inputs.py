# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the programs' inputs from fixed seeds, so they are the same everywhere."""

import random
import struct
import wave
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SEED = 20260101

SCRIPTS = Path(__file__).with_name("run")  # Programs for interpreters.


def script(path: Path) -> None:
    """Copies the script that has the same file name from `SCRIPTS`."""
    path.write_bytes((SCRIPTS / path.name).read_bytes())


def text(path: Path, megabytes: float) -> None:
    """Writes lines of words and numbers. The words' frequencies follow Zipf's law."""
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
    """Returns a picture, [height, width, 3], of smooth waves with a little noise."""
    draw = np.random.default_rng(SEED)
    waves = draw.uniform(5.0, 200.0, (3, 3))
    planes = np.empty((height, width, 3), np.uint8)
    # Work plane by plane, because a large picture of doubles would take a gigabyte.
    for number, (a, b, c) in enumerate(waves):
        rows = np.cos(np.arange(height) / b - c).astype(np.float32)
        columns = np.sin(np.arange(width) / a + c).astype(np.float32)
        plane = 128 + 90 * np.outer(rows, columns)
        plane += draw.integers(-9, 10, plane.shape, np.int8)
        planes[..., number] = np.clip(plane, 0, 255)
    return planes


def ppm(path: Path, width: int, height: int) -> None:
    """Writes a picture as a portable pixmap."""
    header = b"P6\n%d %d\n255\n" % (width, height)
    path.write_bytes(header + _pixels(width, height).tobytes())


def png(path: Path, width: int, height: int) -> None:
    """Writes a picture as PNG. Its rows use different filters."""
    rows = _pixels(width, height).astype(np.int64)
    left = np.pad(rows, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    above = np.pad(rows, ((1, 0), (0, 0), (0, 0)))[:-1]
    guesses = (np.zeros_like(rows), left, above, (left + above) // 2)
    lines = b"".join(
        bytes([y % 4]) + (rows[y] - guesses[y % 4][y]).astype(np.uint8).tobytes()
        for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for chunk in (b"IHDR" + header, b"IDAT" + zlib.compress(lines, 6), b"IEND"):
            file.write(struct.pack(">I", len(chunk) - 4) + chunk)
            file.write(struct.pack(">I", zlib.crc32(chunk)))


def _bits(width: int, height: int) -> bytes:
    """Returns a black and white picture with rough spots, with 8 pixels per byte."""
    return np.packbits(_pixels(width, height)[..., 0] > 128, axis=1).tobytes()


def bitmap(path: Path, width: int, height: int) -> None:
    """Writes a black and white picture as a portable bitmap."""
    path.write_bytes(b"P4 %d %d\n" % (width, height) + _bits(width, height))


def tiff(path: Path, width: int, height: int) -> None:
    """Writes a colour picture as uncompressed TIFF."""
    _tiff(path, _pixels(width, height).tobytes(), width, height, bilevel=False)


def bilevel_tiff(path: Path, width: int, height: int) -> None:
    """Writes a black and white picture as uncompressed TIFF."""
    _tiff(path, _bits(width, height), width, height, bilevel=True)


def _tiff(path: Path, data: bytes, width: int, height: int, *, bilevel: bool) -> None:
    samples = 1 if bilevel else 3
    # Tags of TIFF 6.0. Type 3 is a short, and type 4 is a long.
    entries = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        # Three shorts do not fit in the entry, so they follow the header.
        (258, 3, samples, 1 if bilevel else 8),
        (259, 3, 1, 1),
        (262, 3, 1, 1 if bilevel else 2),
        (273, 4, 1, 14),
        (277, 3, 1, samples),
        (278, 4, 1, height),
        (279, 4, 1, len(data)),
    ]
    with path.open("wb") as file:
        padding = len(data) % 2
        file.write(struct.pack("<2sHI3H", b"II", 42, 14 + len(data) + padding, 8, 8, 8))
        file.write(data + bytes(padding) + struct.pack("<H", len(entries)))
        file.writelines(struct.pack("<HHII", *entry) for entry in entries)
        file.write(bytes(4))


def wav(path: Path, seconds: float) -> None:
    """Writes fading chords and noise, as two channels of 16 bits at 48 kHz."""
    draw = np.random.default_rng(SEED)
    rate = 48_000
    samples = np.empty((int(seconds * rate), 2), "<i2")
    for start in range(0, len(samples), rate // 2):
        part = samples[start : start + rate // 2]
        at = np.arange(len(part))[:, None] / rate
        mixed = draw.normal(0.0, 60.0, part.shape)
        for semitone in draw.choice(48, 4, replace=False):
            pitch = 110.0 * 2.0 ** (semitone / 12)
            loud = draw.uniform(500.0, 5000.0, 2) * np.exp(-at * draw.uniform(1, 9))
            mixed += loud * np.sin(2 * np.pi * pitch * at)
        part[:] = np.clip(mixed, -32768, 32767)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())


def _words(draw: random.Random, count: int) -> list[str]:
    letters = "etaoinshrdlcumwfgypbvkjxqz"
    return [
        "".join(letters[min(int(draw.expovariate(0.12)), 25)] for _ in range(size))
        for size in (draw.randint(2, 10) for _ in range(count))
    ]


def _text(make: Callable[..., Iterator[str]]) -> Callable[..., None]:
    """Makes a function that writes generated texts to a file, with a fixed seed."""

    def write(path: Path, *numbers: float) -> None:
        with path.open("w", encoding="ascii") as file:
            file.writelines(make(random.Random(SEED), *numbers))

    return write


@_text
def markdown(draw: random.Random, sections: int) -> Iterator[str]:
    """Yields a document with headings, lists, quotes, code, links and emphasis."""
    words = _words(draw, 3000)

    def prose(count: int) -> str:
        marks = ("{}", "{}", "{}", "{}", "*{}*", "**{}**", "`{}`", "[{}](/{} 'to')")
        return " ".join(
            draw.choice(marks).replace("{}", draw.choice(words)) for _ in range(count)
        )

    for number in range(sections):
        yield f"{'#' * (1 + number % 4)} {prose(4)}\n\n{prose(60)}\n\n"
        yield from (f"{n}. {prose(8)}\n   - {prose(5)}\n" for n in range(1, 4))
        yield f"\n> {prose(20)}\n> > {prose(9)} &amp; &copy;\n\n"
        yield f"```c\n{prose(9)}\n```\n\n![{prose(2)}][r{number}]\n\n"
        title = draw.choice(words)
        yield f'[r{number}]: <http://example/{number}> "{title}"\n'
        yield f"\n<div>{prose(3)}</div>\n\n***\n\n"


@_text
def xml(draw: random.Random, records: int) -> Iterator[str]:
    """Yields a document with a DTD, entities, attributes, namespaces and CDATA."""
    words = _words(draw, 2000)
    yield (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE list [\n'
        "<!ELEMENT list (item*)>\n"
        "<!ATTLIST item kind (a|b|c) 'a' id ID #REQUIRED>\n"
        '<!ENTITY who "someone &amp; <b>others</b>">\n]>\n'
        '<list xmlns:x="urn:example">\n'
    )
    for number in range(records):
        line = " ".join(draw.choices(words, k=12))
        yield (
            f'<item id="i{number}" kind="{"abc"[number % 3]}" x:at="{line[:20]}">'
            f"{line} &who; &#{draw.randrange(192, 600)};"
            f"<x:part><![CDATA[<{line[20:40]}>]]></x:part><!-- {number} -->"
            f"<?do {line[:9]}?><empty/></item>\n"
        )
    yield "</list>\n"


@_text
def json(draw: random.Random, records: int) -> Iterator[str]:
    """Yields one record per line, with lists, texts and numbers."""
    words = _words(draw, 2000)
    for number in range(records):
        tags = ", ".join(f'"{word}"' for word in draw.choices(words, k=4))
        yield (
            f'{{"id": {number}, "group": "{draw.choice(words[:50])}", '
            f'"price": {draw.uniform(0, 1000):.2f}, "tags": [{tags}], '
            f'"text": "{" ".join(draw.choices(words, k=8))}\\n\\u00e9", '
            f'"open": {"true" if number % 3 else "null"}}}\n'
        )


@_text
def grammar(draw: random.Random, rules: int) -> Iterator[str]:
    """Yields a grammar of different statements for yacc."""
    tokens = [f"T{n}" for n in range(150)]
    yield f"%{{\nint n;\n%}}\n%token {' '.join(tokens)}\n"
    yield "%left '+' '-'\n%left '*' '/'\n%right '^'\n%%\n"
    yield "all: | all statement ';' ;\nstatement:\n"
    yield "\n".join(f" | K{n} r{n}" for n in range(rules))[3:] + " ;\n"
    for n in range(rules):
        yield f"K{n}: {draw.choice(tokens)} {draw.choice(tokens)} ;\n"
        forms = []
        for _ in range(draw.randint(2, 5)):
            parts = [
                draw.choice((draw.choice(tokens), "e", f"r{draw.randrange(rules)}"))
                for _ in range(draw.randint(1, 4))
            ]
            forms.append(f"{draw.choice(tokens)} {' '.join(parts)} {{ n += $1; }}")
        yield f"r{n}: {' | '.join(forms)} ;\n"
    yield "e: e '+' e | e '-' e | e '*' e | e '/' e | e '^' e\n"
    yield f" | '(' e ')' | {' | '.join(tokens[:9])} ;\n%%\n"


@_text
def assembly(draw: random.Random, functions: int) -> Iterator[str]:
    """Yields a nasm file with macros, labels, data and many kinds of instructions."""
    names = ("ax", "cx", "dx", "bx", "si", "di", *range(8, 16))
    registers = [f"r{name}" for name in names]
    yield "bits 64\ndefault rel\n%define TWICE(x) ((x) * 2)\n"
    yield "%macro enter_with 1\n push rbp\n mov rbp, rsp\n"
    yield "%if %1 > 32\n sub rsp, %1\n%endif\n%endmacro\nsection .text\n"
    for n in range(functions):
        a, b, c = draw.sample(registers, 3)
        number = draw.randrange(1, 1 << draw.choice((6, 14, 30)))
        yield (
            f"global f{n}\nf{n}:\n enter_with {number % 64}\n"
            f" mov {a}, [{b} + {c} * 8 + {number}]\n lea {b}, [data{n}]\n"
            f".loop: add {a}, TWICE({number % 1000})\n imul {c}, {a}, {number}\n"
            f" xor {b}, {c}\n cmp {a}, {b}\n jne .loop\n"
            f" movaps xmm{n % 16}, [rsp + {16 * (n % 9)}]\n"
            f" vaddpd ymm{n % 16}, ymm{number % 16}, [{b}]\n"
            f" cvtsi2sd xmm{number % 16}, {c}\n call f{draw.randrange(functions)}\n"
            f"%assign i 0\n%rep {n % 4}\n shl {a}, i + 1\n%assign i i + 1\n"
            f"%endrep\n"
            f" leave\n ret\nsection .data\n"
            f"data{n}: dq {number}, f{n}, 1.5e{n % 9}\n"
            f" db 'text {n}', 0\n align 8\nsection .text\n"
        )


@_text
def integer_program(draw: random.Random, rows: int, columns: int) -> Iterator[str]:
    """Yields a knapsack problem in several dimensions for glpsol."""
    items = [f"x{n}" for n in range(columns)]
    worth = [draw.randint(10, 99) for _ in items]

    def total(weights: list[int]) -> str:
        return "\n + ".join(f"{w} {x}" for w, x in zip(weights, items, strict=True))

    yield f"Maximize\n worth: {total(worth)}\nSubject To\n"
    for row in range(rows):
        weights = [max(1, w + draw.randint(-9, 40)) for w in worth]
        yield f" c{row}: {total(weights)} <= {sum(weights) // 3}\n"
    yield "Binary\n " + "\n ".join(items) + "\nEnd\n"


@_text
def satisfiability(draw: random.Random, variables: int, ratio: float) -> Iterator[str]:
    """Yields random 3-SAT, which is hardest near 4.26 clauses per variable."""
    clauses = round(variables * ratio)
    yield f"p cnf {variables} {clauses}\n"
    for _ in range(clauses):
        three = draw.sample(range(1, variables + 1), 3)
        signed = [v if draw.random() < 0.5 else -v for v in three]
        yield " ".join(map(str, signed)) + " 0\n"


@_text
def c_source(draw: random.Random, functions: int) -> Iterator[str]:
    """Yields a C file with many small functions that ``main`` calls."""
    for n in range(functions):
        a, b, c = (draw.randrange(1, 1000) for _ in range(3))
        yield (
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
    yield "int main(void) {\n  int sum = 0;\n"
    yield from (f"  sum += f{n}(0, {n});\n" for n in range(functions))
    yield "  return sum & 1;\n}\n"
