# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model that makes gcc's plug-in unroll small loops with many iterations.

Run this program first, and then gcc as README.md describes.
"""

import argparse

import numpy as np

import mlbridge

FITS = 32
"""The maximum number of instructions in an unrolled loop."""


def unroll(features: mlbridge.Features) -> np.int32:
    """Returns the unroll factor of a loop, or 0 to let gcc decide."""
    if features["depth"] > 2 or 0 <= features["iterations"] < 4:
        return np.int32(0)
    return np.int32(min(8, FITS // max(1, int(features["instructions"]))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec", nargs="?", default="pipe:/tmp/unroll")
    mlbridge.serve(unroll, parser.parse_args().spec)
