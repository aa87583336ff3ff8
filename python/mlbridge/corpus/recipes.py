# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which programs there are, and how each is compiled: a table.

A recipe is what a person would do by hand: which C files of the Debian source package,
which flags of its own makefile, what its configure script has to make first. Package
trees are shared with others and never written to; what is made goes to a folder beside.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

HELD_OUT = frozenset({"cadical", "gawk", "sqlite3", "zstd"})
"""The programs that nothing is ever trained on."""

SHARED: Mapping[str, frozenset[str]] = {"lz4": frozenset({"lib/xxhash.c"})}
"""Sources of training programs that a held-out program has, too: xxHash is in zstd.
They are compiled, for the program needs them, and nothing is trained on them."""


@dataclass(frozen=True)
class Recipe:
    """How to compile one program.

    Everywhere ``{tree}`` is the package's folder, ``{made}`` the one for what is made,
    ``{packages}`` that of all packages, ``{scripts}`` that of this project's scripts.

    Attributes:
        package: the Debian source package.
        sources: its files, as globs below ``root``.
        without: those of them that are not wanted, as globs.
        flags: of the compiler, but for those of optimisation.
        libraries: what the linker needs.
        root: where the sources are.
        headers: to be written to ``{made}``, by name.
        commands: to be run in ``{made}`` before anything is compiled.
    """

    package: str
    sources: tuple[str, ...]
    without: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    root: str = "{tree}"
    headers: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = ()


_BZIP2 = "blocksort huffman crctable randtable compress decompress bzlib bzip2"
_GAWK = (
    "array awkgram builtin cint_array command debug eval ext field floatcomp gawkapi "
    "gawkmisc int_array io main mpfr msg node profile re replace str_array symbol "
    "version support/dfa support/getopt support/getopt1 support/localeinfo support/pma "
    "support/random support/regex"
)
_JPEG = (
    "jcapimin jcapistd jccoefct jccolor jcdctmgr jchuff jcicc jcinit jcmainct jcmarker "
    "jcmaster jcomapi jcparam jcphuff jcprepct jcsample jctrans jdapimin jdapistd "
    "jdatadst jdatasrc jdcoefct jdcolor jddctmgr jdhuff jdicc jdinput jdmainct "
    "jdmarker jdmaster jdmerge jdphuff jdpostct jdsample jdtrans jerror jfdctflt "
    "jfdctfst jfdctint jidctflt jidctfst jidctint jidctred jquant1 jquant2 jutils "
    "jmemmgr jmemnobs jaricom jcarith jdarith jsimd_none cdjpeg cjpeg rdbmp rdgif "
    "rdppm rdswitch rdtarga"
)
_TCC = "tcc libtcc tccpp tccgen tccelf tccasm tccrun x86_64-gen x86_64-link i386-asm"


def _c(names: str) -> tuple[str, ...]:
    return tuple(f"{name}.c" for name in names.split())


RECIPES: dict[str, Recipe] = {
    "brotli": Recipe(
        "brotli",
        ("c/common/*.c", "c/enc/*.c", "c/dec/*.c", "c/tools/brotli.c"),
        flags=("-Ic/include",),
        libraries=("-lm",),
    ),
    "bzip2": Recipe("bzip2", _c(_BZIP2), flags=("-D_FILE_OFFSET_BITS=64",)),
    "cadical": Recipe(
        "cadical",
        ("src/*.cpp",),
        # Another program.
        without=("src/mobical.cpp",),
        flags=("-std=c++17", "-DNBUILD", "-DNDEBUG"),
    ),
    "gawk": Recipe(
        "gawk",
        _c(_GAWK),
        flags=(
            *("-DHAVE_CONFIG_H", "-DGAWK", "-I{made}", "-I.", "-Isupport"),
            *('-DDEFPATH="."', '-DDEFLIBPATH=""', '-DSHLIBEXT="so"'),
            '-DLOCALEDIR=""',
        ),
        libraries=("-lm", "-ldl"),
        commands=(
            (
                *("{tree}/configure", "-q", "CC=clang-22", "--disable-extensions"),
                *("--without-readline", "--disable-mpfr", "--disable-nls"),
            ),
        ),
    ),
    "libjpeg-turbo": Recipe(
        "libjpeg-turbo",
        _c(_JPEG),
        flags=(
            *("-I{made}", "-I.", "-DBMP_SUPPORTED", "-DGIF_SUPPORTED"),
            *("-DPPM_SUPPORTED", "-DTARGA_SUPPORTED"),
        ),
        commands=(("cmake", "{tree}", "-DWITH_SIMD=0", "-DCMAKE_C_COMPILER=clang-22"),),
    ),
    "libpng": Recipe(
        "libpng1.6",
        ("png*.c", "contrib/examples/pngtopng.c"),
        # Its own test.
        without=("pngtest.c",),
        flags=("-I{made}", "-I.", "-DPNG_INTEL_SSE_OPT=0"),
        libraries=("-lz", "-lm"),
        commands=(("cp", "{tree}/scripts/pnglibconf.h.prebuilt", "pnglibconf.h"),),
    ),
    "lua": Recipe(
        "lua5.4",
        ("src/*.c",),
        # Another program.
        without=("src/luac.c",),
        flags=("-std=gnu99", "-DLUA_COMPAT_5_3", "-DLUA_USE_POSIX", "-I{made}"),
        libraries=("-lm",),
        # The one header that Debian's build makes.
        headers={
            "lua5.4-deb-multiarch.h": '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"\n'
        },
    ),
    "lz4": Recipe(
        "lz4",
        ("lib/*.c", "programs/*.c"),
        flags=("-Ilib", "-DXXH_NAMESPACE=LZ4_"),
    ),
    "picosat": Recipe(
        "picosat",
        _c("picosat app main version"),
        flags=("-DNDEBUG", "-I{made}", "-I."),
        headers={
            "config.h": "".join(
                f'#define PICOSAT_{name} "{value}"\n'
                for name, value in (("CC", "cc"), ("CFLAGS", ""), ("VERSION", "965"))
            )
        },
    ),
    "sqlite3": Recipe(
        "sqlite3",
        ("sqlite3.c", "shell.c"),
        flags=("-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-I."),
        libraries=("-lm",),
        root="{packages}/sqlite3-amalgamation",
        commands=(("{scripts}/fetch-sqlite3", "{packages}"),),
    ),
    "tcc": Recipe(
        "tcc",
        _c(_TCC),
        flags=("-I{made}", "-I.", "-DONE_SOURCE=0"),
        libraries=("-lm", "-ldl"),
        commands=(("{tree}/configure", "--cc=clang-22"),),
    ),
    "xz": Recipe(
        "xz-utils",
        ("src/liblzma/*/*.c", "src/xz/*.c", "src/common/*.c"),
        # Made for threads, for small memories, or to make tables.
        without=(
            *("*_mt.c", "*/outqueue.c", "*/hardware_cputhreads.c"),
            *("*_small.c", "*tablegen.c"),
        ),
        flags=(
            "-DHAVE_CONFIG_H",
            "-I{made}",
            *(f"-Isrc/liblzma/{x}" for x in ("api", "common", "check", "delta")),
            *(f"-Isrc/liblzma/{x}" for x in ("lz", "lzma", "rangecoder", "simple")),
            *("-Isrc/common", "-Isrc/xz", '-DLOCALEDIR=""'),
        ),
        commands=(
            (
                *("{tree}/configure", "-q", "CC=clang-22", "--disable-nls"),
                *("--disable-threads", "--disable-doc", "--disable-shared"),
            ),
        ),
    ),
    "zlib": Recipe(
        "zlib",
        ("*.c", "test/minigzip.c"),
        flags=("-D_LARGEFILE64_SOURCE=1", "-DHAVE_UNISTD_H", "-I."),
    ),
    "zstd": Recipe(
        "libzstd",
        (
            *(f"lib/{x}/*.c" for x in ("common", "compress", "decompress")),
            "lib/dictBuilder/*.c",
            *_c("programs/zstdcli programs/util programs/timefn"),
            *_c("programs/fileio programs/fileio_asyncio"),
        ),
        flags=(
            *("-Ilib", "-Ilib/common", "-Iprograms", "-DXXH_NAMESPACE=ZSTD_"),
            *("-DZSTD_DISABLE_ASM=1", "-DZSTD_LEGACY_SUPPORT=0", "-DZSTD_NODICT=1"),
            *("-DZSTD_NOTRACE=1", "-DZSTD_NOBENCH=1"),
        ),
    ),
}


def split_of(program: str) -> str:
    """``held-out`` or ``training``: whole programs, so that no code is in both."""
    return "held-out" if program in HELD_OUT else "training"
