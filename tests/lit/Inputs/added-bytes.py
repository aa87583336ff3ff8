"""Fails unless the second file is LEAST to MOST bytes larger than the first.

added-bytes.py FILE FILE LEAST MOST
"""

import sys
from pathlib import Path

without, with_it = (Path(name).stat().st_size for name in sys.argv[1:3])
least, most = map(int, sys.argv[3:])
added = with_it - without
print(f"{without} bytes, {with_it} bytes: {added} more")
sys.exit(not least <= added <= most)
