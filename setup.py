"""Build the Cython modules over csrc/.

The C++ core is compiled once into objects that every extension links (the modules share no
state, so static linking of the same objects is safe). There is one set of flags: no -march=native
and no -ffast-math; the files csrc/kfu/*_avx2.cpp and *_avx512.cpp select their instruction set
with pragmas and are chosen at run time, so one wheel serves every x86-64 machine.

Environment:
    KFU_ONLY=_reader,_gram   build only these extension modules (for development); "none" builds
                             nothing (the Makefile installs with it and builds in place after)
    KFU_CXXFLAGS="..."       extra compiler and linker flags (the sanitizer build uses it)
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

EXTRA = os.environ.get("KFU_CXXFLAGS", "").split()
WARN = ["-Wall", "-Wextra"]
COMPILE = ["-std=c++17", "-O3", "-g0", "-fopenmp", "-fvisibility=hidden", *WARN, *EXTRA]
LINK = ["-fopenmp", *EXTRA]

# Extension module -> the csrc files it needs, as glob patterns.
GRAM = [
    f"csrc/kfu/{part}*.cpp"
    for part in (
        *("kernels", "program", "points", "pages", "sparse_copy", "columns", "panel_"),
        *("gram", "extent"),
    )
]
SOLVER = [
    *GRAM,
    *(
        f"csrc/kfu/{part}*.cpp"
        for part in (
            *("certif", "dual_solver", "exact_gradient", "extrapolation", "kernel_store"),
            *("linear_map", "weighted_sums"),
        )
    ),
    *(f"csrc/kfu/{part}*.cpp" for part in ("row_tier", "smo", "square_tier", "working_set")),
]
MODULES: dict[str, list[str]] = {
    "_reader": ["csrc/kfu/text_*.cpp"],
    "_gram": GRAM,
    "_solver": SOLVER,
    "_rank": [*SOLVER, "csrc/kfu/rank_*.cpp"],
    "_multiclass": [
        *GRAM,
        *(f"csrc/kfu/{part}*.cpp" for part in ("multiclass", "linear_map", "smo_loops")),
    ],
    "_path": [
        *GRAM,
        *(
            f"csrc/kfu/{part}*.cpp"
            for part in ("free_factor", "kernel_rows", "kernel_store", "parametric", "row_tier")
        ),
        "csrc/kfu/smo_loops*.cpp",
    ],
    "_linear": ["csrc/kfu/linear_*.cpp", "csrc/kfu/certificate.cpp"],
    "_triangles": [],  # BLAS alone
}


def sources_of(patterns: list[str]) -> list[str]:
    return sorted({str(path) for pattern in patterns for path in Path().glob(pattern)})


HEADERS = sorted(str(path) for pattern in ("*.h", "*.inc") for path in Path("csrc").rglob(pattern))


class BuildExtensions(build_ext):
    """build_ext that compiles each csrc file once, in parallel, and links it where needed."""

    def build_extensions(self) -> None:
        needed = sorted({s for ext in self.extensions for s in ext.core_sources})
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = dict(zip(needed, pool.map(self.core_object, needed), strict=True))
        for ext in self.extensions:
            ext.extra_objects = [objects[s] for s in ext.core_sources]
        super().build_extensions()

    def core_object(self, source: str) -> str:
        out = Path(self.build_temp) / "core"
        out.mkdir(parents=True, exist_ok=True)
        target = out / source.replace(".cpp", ".o")
        newest = max(os.path.getmtime(p) for p in [source, "setup.py", *HEADERS])
        if self.force or not target.exists() or target.stat().st_mtime < newest:
            self.compiler.compile(
                [source], output_dir=str(out), include_dirs=["csrc"], extra_postargs=COMPILE
            )
        return str(target)


def extension(name: str, patterns: list[str]) -> Extension:
    core = sources_of(patterns)
    ext = Extension(
        f"kfu.{name}",
        [f"kfu/{name}.pyx"],
        language="c++",
        include_dirs=["csrc", numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=COMPILE,
        extra_link_args=LINK,
        depends=["setup.py", *HEADERS, *sources_of(["csrc/kfu/*.cpp"]), *sources_of(["kfu/*.pxd"])],
    )
    ext.core_sources = core
    return ext


def extensions() -> list[Extension]:
    only = [name for name in os.environ.get("KFU_ONLY", "").split(",") if name]
    if only == ["none"]:
        return []
    chosen = only or [name for name in MODULES if Path(f"kfu/{name}.pyx").exists()]
    built = [extension(name, MODULES[name]) for name in chosen]
    core_of = {ext.name: ext.core_sources for ext in built}
    result = cythonize(
        built,
        build_dir="build/cython",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": True,
            "freethreading_compatible": False,
        },
    )
    for ext in result:  # cythonize copies the objects and drops attributes it does not know
        ext.core_sources = core_of[ext.name]
    return result


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
