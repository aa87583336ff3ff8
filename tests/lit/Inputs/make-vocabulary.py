"""Prints an IR2Vec vocabulary of random vectors: make-vocabulary.py DIMENSION."""

import json
import random
import subprocess
import sys

PREDICATE_PREFIXES = ("FCMP_", "ICMP_")
OPERANDS = ("Function", "Pointer", "Constant", "Variable")
TYPE_SUFFIX = "Ty"

dim = int(sys.argv[1])
rng = random.Random(0)
# The first line has the number of later lines, which are "NAME<tab>NUMBER".
listing = subprocess.run(
    ["llvm-ir2vec", "entities"], check=True, capture_output=True, text=True
).stdout.splitlines()[1:]
sections: dict[str, dict[str, list[float]]] = {
    "Opcodes": {},
    "Types": {},
    "Arguments": {},
}
for line in listing:
    name = line.split("\t")[0]
    if name.endswith(TYPE_SUFFIX):
        section = "Types"
    elif name in OPERANDS or name.startswith(PREDICATE_PREFIXES):
        section = "Arguments"
    else:
        section = "Opcodes"
    sections[section][name] = [rng.uniform(-1, 1) for _ in range(dim)]
json.dump(sections, sys.stdout)
