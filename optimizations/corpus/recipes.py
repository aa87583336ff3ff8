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
    """

    package: str  # The Debian source package.
    sources: tuple[str, ...]  # Its files, as globs below ``root``.
    without: tuple[str, ...] = ()  # Those of them that are not wanted, as globs.
    flags: tuple[str, ...] = ()  # Of the compiler, but for those of optimisation.
    libraries: tuple[str, ...] = ()  # What the linker needs.
    root: str = "{tree}"  # Where the sources are.
    # To be written to ``{made}``, by name.
    headers: Mapping[str, str] = field(default_factory=dict)
    # To be run in ``{made}`` before anything is compiled.
    commands: tuple[tuple[str, ...], ...] = ()


_BYACC = (
    "closure error graph lalr lr0 main mkpar mstring output reader symtab verbose "
    "warshall yaccpar"
)
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
_JQ_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh exp exp10 "
    "exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp ldexp lgamma lgamma_r log "
    "log10 log1p log2 logb modf nearbyint pow rint round scalb scalbln significand "
    "sin sinh sqrt tan tanh tgamma trunc"
)
_LAME = "main lame_main parse get_audio timestatus lametime console brhist"
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
    "byacc": Recipe(
        "byacc",
        _c(_BYACC),
        flags=("-DHAVE_CONFIG_H", "-DYYPATCH=20221106", "-I{made}", "-I."),
        commands=(("{tree}/configure", "CC=clang-22"),),
    ),
    "bzip2": Recipe("bzip2", _c(_BZIP2), flags=("-D_FILE_OFFSET_BITS=64",)),
    "cadical": Recipe(
        "cadical",
        ("src/*.cpp",),
        # Another program.
        without=("src/mobical.cpp",),
        flags=("-std=c++17", "-DNBUILD", "-DNDEBUG"),
    ),
    "cmark": Recipe(
        "cmark",
        ("src/*.c",),
        flags=("-I{made}/src", "-Isrc", "-DCMARK_STATIC_DEFINE"),
        commands=(
            ("cmake", "{tree}", "-DCMAKE_C_COMPILER=clang-22", "-DCMARK_TESTS=OFF"),
        ),
    ),
    "dash": Recipe(
        "dash",
        ("*.c", "bltin/*.c"),
        # They make others.
        without=("mk*.c",),
        flags=("-include", "{made}/config.h", "-DBSD=1", "-DSHELL", "-I."),
        # Some of its sources are made of others, where these are.
        root="{made}/src",
        commands=(
            ("cp", "-a", "{tree}/.", "."),
            ("./configure", "-q", "CC=clang-22", "--without-libedit"),
            (
                *("make", "-C", "src", "builtins.c", "init.c", "nodes.c"),
                *("signames.c", "syntax.c", "token.h", "token_vars.h"),
                # That files are newer than others is the unpacking's doing.
                *(f"{x}=:" for x in ("ACLOCAL", "AUTOCONF", "AUTOHEADER", "AUTOMAKE")),
            ),
        ),
    ),
    "expat": Recipe(
        "expat",
        (
            *_c("lib/xmlparse lib/xmlrole lib/xmltok xmlwf/codepage"),
            *_c("xmlwf/unixfilemap xmlwf/xmlfile xmlwf/xmlwf"),
        ),
        flags=("-DHAVE_EXPAT_CONFIG_H", "-I{made}", "-Ilib"),
        root="{tree}/expat",
        headers={
            "expat_config.h": "".join(
                f"#define {line}\n"
                for line in (
                    *("BYTEORDER 1234", "HAVE_GETRANDOM 1", "HAVE_MMAP 1"),
                    *("HAVE_UNISTD_H 1", "XML_CONTEXT_BYTES 1024", "XML_DTD 1"),
                    *("XML_NS 1", "XML_DEV_URANDOM 1"),
                    'PACKAGE "expat"',
                )
            )
        },
    ),
    "flac": Recipe(
        "flac",
        (
            *("src/flac/*.c", "src/libFLAC/*.c", "src/share/grabbag/*.c"),
            *("src/share/replaygain_*/*.c", "src/share/utf8/*.c"),
        ),
        # Made for Ogg and for other processors; what the C library has; other programs.
        without=(
            *("*/ogg_*.c", "*_intrin_*.c"),
            *("*/charset_test.c", "*/makemap.c"),
            "src/flac/iffscan.c",
        ),
        flags=(
            *("-DHAVE_CONFIG_H", "-DFLAC__NO_DLL", "-I{made}", "-Iinclude"),
            *("-Isrc/libFLAC/include", "-D_GNU_SOURCE"),
            # It has a getopt of its own, as gawk has; the C library's will do.
            *(
                f"-Dshare__{name}={name}"
                for name in ("getopt_long", "optarg", "opterr", "optind", "option")
            ),
        ),
        libraries=("-lm",),
        commands=(
            (
                *("{tree}/configure", "-q", "CC=clang-22", "--disable-ogg"),
                *("--disable-asm-optimizations", "--disable-cpplibs"),
                "--disable-shared",
            ),
        ),
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
    "glpk": Recipe(
        "glpk",
        (
            *(f"src/{x}/*.c" for x in ("amd", "api", "bflib", "colamd", "draft")),
            *(f"src/{x}/*.c" for x in ("env", "intopt", "minisat", "misc", "mpl")),
            *(f"src/{x}/*.c" for x in ("npp", "proxy", "simplex")),
            "examples/glpsol.c",
        ),
        # Another program.
        without=("src/proxy/main.c",),
        flags=(
            *("-DHAVE_CONFIG_H", "-I{made}", "-Isrc"),
            *(f"-Isrc/{x}" for x in ("amd", "api", "bflib", "colamd", "draft")),
            *(f"-Isrc/{x}" for x in ("env", "intopt", "minisat", "misc", "mpl")),
            *(f"-Isrc/{x}" for x in ("npp", "proxy", "simplex")),
        ),
        # Its zlib is the machine's.
        libraries=("-lz", "-lm"),
        commands=(("{tree}/configure", "-q", "CC=clang-22", "--disable-shared"),),
    ),
    "jq": Recipe(
        "jq",
        ("src/*.c",),
        # It makes system calls fail, for tests.
        without=("src/inject_errors.c",),
        flags=(
            *("-D_GNU_SOURCE", "-DIEEE_8087", "-I{made}", "-I.", "-Isrc"),
            *(f"-DHAVE_{x.upper()}" for x in _JQ_MATH.split()),
            *("-DHAVE_GMTIME_R", "-DHAVE_STRPTIME", "-DHAVE_TIMEGM"),
            *(
                "-DHAVE_ISATTY",
                "-DHAVE_MKSTEMP",
                "-DHAVE_MEMMEM",
                "-DHAVE_TM_TM_GMT_OFF",
            ),
        ),
        libraries=("-lm", "-lpthread"),
        # What its makefile makes; its configure script is not in the package.
        commands=(
            ("mkdir", "src"),
            ("sh", "-c", """echo '#define JQ_VERSION "1.6"' >src/version.h"""),
            (
                *("sh", "-c"),
                r"""sed 's/[\\"]/\\&/g; s/^/"/; s/$/\\n"/' "$0" >src/builtin.inc""",
                "{tree}/src/builtin.jq",
            ),
        ),
    ),
    "lame": Recipe(
        "lame",
        (
            *(f"frontend/{name}" for name in _c(_LAME)),
            *("libmp3lame/*.c", "libmp3lame/vector/*.c", "mpglib/*.c"),
        ),
        flags=(
            *("-DHAVE_CONFIG_H", "-I{made}", "-Iinclude", "-Impglib"),
            *("-Ilibmp3lame", "-Ifrontend"),
        ),
        libraries=("-lm",),
        commands=(
            (
                *("{tree}/configure", "-q", "CC=clang-22", "--disable-shared"),
                *("--enable-nasm=no", "ac_cv_lib_termcap_initscr=no"),
                *("ac_cv_lib_curses_initscr=no", "ac_cv_lib_ncurses_initscr=no"),
                *("ac_cv_header_termcap_h=no", "ac_cv_header_ncurses_termcap_h=no"),
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
    "libwebp": Recipe(
        "libwebp",
        (
            *("src/*/*.c", "sharpyuv/*.c", "imageio/*.c"),
            *_c("examples/cwebp examples/example_util"),
        ),
        # Made for other processors.
        without=(
            *("*_neon.c", "*_msa.c", "*_mips32.c", "*_mips_dsp_r2.c", "*_sse41.c"),
            "*/wicdec.c",
        ),
        # Without the header that says so, it takes the SSE2 that there always is.
        flags=("-I.", "-Isrc", "-DWEBP_DISABLE_STATS=0"),
        libraries=("-lm",),
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
    "minisat": Recipe(
        "minisat2",
        (*("minisat/core/Solver.cc", "minisat/simp/*.cc", "minisat/utils/*.cc"),),
        flags=(
            *("-std=gnu++98", "-D__STDC_LIMIT_MACROS", "-D__STDC_FORMAT_MACROS"),
            *("-DNDEBUG", "-I."),
        ),
        libraries=("-lz",),
    ),
    "mujs": Recipe(
        "mujs",
        ("js*.c", *_c("main regexp utf")),
        flags=("-std=c99",),
        libraries=("-lm",),
    ),
    "nasm": Recipe(
        "nasm",
        (
            *(f"{x}/*.c" for x in ("asm", "common", "macros", "nasmlib")),
            *(f"{x}/*.c" for x in ("output", "stdlib", "x86")),
            "disasm/*.c",
        ),
        # Another program, and what only that one needs.
        without=("disasm/ndisasm.c", "nasmlib/errfile.c"),
        flags=(
            *("-DHAVE_CONFIG_H", "-I{made}", "-I.", "-Iinclude", "-Ix86"),
            *("-Iasm", "-Idisasm", "-Ioutput"),
        ),
        commands=(("{tree}/configure", "-q", "CC=clang-22"),),
    ),
    "opus": Recipe(
        "opus",
        ("celt/*.c", "silk/*.c", "silk/float/*.c", "src/*.c"),
        # Other programs.
        without=(
            *("celt/opus_custom_demo.c", "src/opus_compare.c"),
            "src/repacketizer_demo.c",
        ),
        flags=(
            *("-DOPUS_BUILD", "-DVAR_ARRAYS", "-DHAVE_LRINT", "-DHAVE_LRINTF"),
            *('-DPACKAGE_VERSION="1.3.1"', "-Iinclude", "-Icelt", "-Isilk"),
            *("-Isilk/float", "-Isrc"),
        ),
        libraries=("-lm",),
    ),
    "pcre2": Recipe(
        "pcre2",
        ("*.c",),
        # Other programs, and what others include.
        without=(
            *("pcre2_dftables.c", "pcre2_fuzzsupport.c", "pcre2_jit_match.c"),
            *("pcre2_jit_misc.c", "pcre2_jit_test.c", "pcre2_printint.c"),
            *("pcre2_ucptables.c", "pcre2demo.c", "pcre2posix*.c", "pcre2test.c"),
        ),
        flags=(
            *("-DHAVE_CONFIG_H", "-DPCRE2_CODE_UNIT_WIDTH=8", "-DPCRE2_STATIC"),
            *("-DSUPPORT_PCRE2_8", "-DSUPPORT_UNICODE", "-I."),
            *("-DHAVE_MEMMOVE", "-DHAVE_STRERROR", "-DHAVE_UNISTD_H"),
        ),
        # Its headers and tables, as for those who have no configure.
        root="{made}/src",
        commands=(
            ("cp", "-R", "{tree}/src", "."),
            ("cp", "src/config.h.generic", "src/config.h"),
            ("cp", "src/pcre2.h.generic", "src/pcre2.h"),
            ("cp", "src/pcre2_chartables.c.dist", "src/pcre2_chartables.c"),
        ),
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
    "potrace": Recipe(
        "potrace",
        ("src/*.c",),
        # Other programs, and the C library's getopt.
        without=(
            *("src/mkbitmap.c", "src/potracelib_demo.c"),
            "src/getopt*.c",
        ),
        flags=("-DHAVE_CONFIG_H", "-I{made}", "-Isrc", "-D_GNU_SOURCE"),
        libraries=("-lz", "-lm"),
        commands=(("{tree}/configure", "-q", "CC=clang-22", "--disable-shared"),),
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
    "tiff": Recipe(
        "tiff",
        ("libtiff/tif_*.c", "tools/tiffcp.c"),
        # For another system, and for codecs of other libraries.
        without=(
            "libtiff/tif_win32.c",
            *(f"libtiff/tif_{x}.c" for x in ("jbig", "jpeg", "jpeg_12", "ojpeg")),
            *(f"libtiff/tif_{x}.c" for x in ("lerc", "lzma", "webp", "zstd")),
        ),
        flags=("-I{made}/libtiff", "-Ilibtiff", "-I{made}/port", "-Iport"),
        libraries=("-lz", "-lm"),
        commands=(
            (
                *("cmake", "{tree}", "-DCMAKE_C_COMPILER=clang-22"),
                *("-DCMAKE_CXX_COMPILER=clang++-22", "-Dcxx=OFF"),
                *(f"-D{x}=OFF" for x in ("jbig", "jpeg", "old-jpeg", "lerc")),
                *(f"-D{x}=OFF" for x in ("lzma", "webp", "zstd", "libdeflate")),
            ),
        ),
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
    "zopfli": Recipe(
        "zopfli",
        ("src/zopfli/*.c", "src/zopflipng/*.cc", "src/zopflipng/lodepng/*.cpp"),
        # Another program.
        without=("src/zopfli/zopfli_bin.c",),
        libraries=("-lm",),
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
