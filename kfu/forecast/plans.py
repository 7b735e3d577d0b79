"""How each way of training the square loss is forecast: laws of its phases, sizes of its pilots,
counts of floating-point operations, and the arrays it holds at its peak.

n: rows of positive weight, d: features, t: outputs, m: centres, r: their rank, b: rows of a block,
left_out: 1 where leave-one-out figures are computed, else 0.
Operations count multiplications and additions; a kernel value of d features counts 2d.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kfu.forecast.laws import Sizes, Term, term
from kfu.least_squares.centred_rows import BLOCK_BYTES
from kfu.least_squares.gram_matrix import gram_bytes
from kfu.least_squares.rectangle_cost import (
    RectangleSizes,
    left_out_operations,
    training_operations,
)

N3, N2, N1 = term(n=3), term(n=2), term(n=1)
Amounts = Callable[[Sizes], dict[str, float]]


@dataclass(frozen=True)
class Plan:
    """`usual` holds for phases that `terms` does not name. `grows` are the sizes that pilots vary,
    with their largest values; `is_certain` is False where the number of steps depends on the data.
    """

    usual: Sequence[Term]
    flops: Amounts
    arrays: Amounts  # bytes
    grows: Mapping[str, int]
    terms: Mapping[str, Sequence[Term]] = field(default_factory=dict)
    is_certain: bool = True


# ---- the matrix in memory ------------------------------------------------------------------------


def _outputs(s: Sizes) -> float:
    return 8.0 * 8 * s["n"] * s["t"]  # targets, right-hand sides, coefficients, outputs


def _full_flops(s: Sizes) -> dict[str, float]:
    n, d, t = s["n"], s["d"], s["t"]
    loo = {"loo": n**3 / 3} if s["left_out"] else {}
    return {"gram": n * n * d, "factor": n**3 / 3, "solve": 6 * n * n * t, **loo}


def _full_arrays(s: Sizes) -> dict[str, float]:
    return {"kernel matrix": gram_bytes(int(s["n"]), 8), "outputs": _outputs(s)}


def _spectrum_flops(s: Sizes) -> dict[str, float]:
    n, d = s["n"], s["d"]
    return {"gram": n * n * d, "eigenvectors": 9 * n**3}


def _spectrum_arrays(s: Sizes) -> dict[str, float]:
    n = s["n"]
    return {"spectrum": 8.0 * 3 * n * n, "outputs": 2 * _outputs(s)}


def _psvm_flops(s: Sizes) -> dict[str, float]:
    n, d = s["n"], s["d"]
    return {"gram": n * n * d, "square": n**3, "factor": n**3 / 3, "loo": n**3 / 3}


def _psvm_arrays(s: Sizes) -> dict[str, float]:
    n = s["n"]
    return {"kernel matrices": 8.0 * 3 * n * n, "outputs": _outputs(s)}


def _cg_flops(s: Sizes) -> dict[str, float]:
    n, d, t = s["n"], s["d"], s["t"]
    rank = 3 * n**0.5
    return {"preconditioner": 4 * n * rank**2, "an iteration": 2 * n * n * (d + t)}


def _cg_arrays(s: Sizes) -> dict[str, float]:
    n = s["n"]
    return {"preconditioner": 3 * 8.0 * n * 3 * n**0.5, "vectors": 2 * _outputs(s)}


# ---- centres -------------------------------------------------------------------------------------


def _rectangle_flops(s: Sizes) -> dict[str, float]:
    sizes = RectangleSizes(*(s[name] for name in ("n", "d", "m", "r", "t", "ridges")))
    if not s["left_out"]:
        return training_operations(sizes, whitens=False)
    training = training_operations(sizes, whitens=True)
    return {**training, "leave_one_out": left_out_operations(sizes)}


def _rectangle_arrays(s: Sizes) -> dict[str, float]:
    """Sums, their system and K_mm's factor; whitening and leverages take copies of them."""
    matrices, blocks = (6, 4) if s["left_out"] else (4, 1)
    return {
        "sums and factors": 8.0 * matrices * s["r"] ** 2,
        "blocks": 8.0 * blocks * s["b"] * s["r"],
        "outputs": 8.0 * 3 * s["n"] * s["t"],
    }


def _subset_flops(s: Sizes) -> dict[str, float]:
    return {"gram": s["m"] ** 2 * s["d"], "factor": s["m"] ** 3 / 3}


def _subset_arrays(s: Sizes) -> dict[str, float]:
    return {"kernel matrix": gram_bytes(int(s["m"]), 8), "outputs": 8.0 * 3 * s["n"] * s["t"]}


def _hinge_arrays(s: Sizes) -> dict[str, float]:
    features = 8.0 * s["n"] * s["r"]
    return {"features": features, "factors": 8.0 * 4 * s["r"] ** 2, "blocks": 8.0 * s["b"] * s["r"]}


# ---- linear --------------------------------------------------------------------------------------


def _primal_flops(s: Sizes) -> dict[str, float]:
    n, d = s["n"], s["d"]
    spectrum = {"spectrum": 9 * d**3 + 3 * n * d * d} if s["ridges"] > 1 else {}
    leverages = {"leverages": n * d * d} if s["left_out"] else {}
    return {"products": n * d * d, "factor": d**3 / 3, **leverages, **spectrum}


def _dual_flops(s: Sizes) -> dict[str, float]:
    n, d = s["n"], s["d"]
    spectrum = {"spectrum": 9 * n**3 + n * n * d} if s["ridges"] > 1 else {}
    leverages = {"leverages": n**3 / 3} if s["left_out"] else {}
    return {"products": n * n * d, "factor": n**3 / 3, **leverages, **spectrum}


def _linear_arrays(s: Sizes) -> dict[str, float]:
    n, d = s["n"], s["d"]
    smaller = min(n, d)
    has_spectrum = s["ridges"] > 1
    image = 8.0 * 2 * n * d if has_spectrum and d < n else 0.0
    return {
        "matrix": 8.0 * (4 if has_spectrum else 2) * smaller**2,
        "image": image,
        "blocks": 3.0 * min(BLOCK_BYTES, 8.0 * n * d),
        "outputs": _outputs(s),
    }


def _linear_cg_flops(s: Sizes) -> dict[str, float]:
    return {"an iteration": 4 * s["entries"] * s["t"]}


def _linear_cg_arrays(s: Sizes) -> dict[str, float]:
    return {"vectors": 8.0 * 8 * (s["n"] + s["d"]) * s["t"]}


CENTRE_TERMS = (term(n=1, r=2), term(n=1, r=1), term(r=3))
PLANS: dict[str, Plan] = {
    "cholesky": Plan(
        (N1,),
        _full_flops,
        _full_arrays,
        {"n": 2000},
        {"gram": (N2,), "factor": (N3, N2), "solve": (N2,), "loo": (N3, N2)},
    ),
    "spectrum": Plan((N3, N2), _spectrum_flops, _spectrum_arrays, {"n": 1400}, {"solve": (N2,)}),
    "psvm": Plan((N3, N2), _psvm_flops, _psvm_arrays, {"n": 1600}),
    "pruned ls-svm": Plan((N3, N2), _full_flops, _full_arrays, {"n": 1000}, is_certain=False),
    "cg": Plan((N2,), _cg_flops, _cg_arrays, {"n": 1500}, is_certain=False),
    "rectangle": Plan(
        (term(n=1), term(r=2)),
        _rectangle_flops,
        _rectangle_arrays,
        {"n": 4000, "m": 2000},
        {
            "centres": (term(m=3), term(m=2)),
            "kernel": (term(n=1, r=1),),
            "products": (term(n=1, r=2), term(n=1, r=1)),
            "leave_one_out": CENTRE_TERMS,
            "solve": (term(r=3),),
        },
    ),
    "nystrom": Plan(CENTRE_TERMS, _rectangle_flops, _rectangle_arrays, {"n": 4000, "m": 2000}),
    "falkon": Plan(
        CENTRE_TERMS, _rectangle_flops, _rectangle_arrays, {"n": 3000, "m": 800}, is_certain=False
    ),
    "subset": Plan(
        (term(m=3), term(m=2), N1), _subset_flops, _subset_arrays, {"m": 2000, "n": 4000}
    ),
    "bagging": Plan(
        (term(m=3), term(m=2), N1), _subset_flops, _subset_arrays, {"m": 1000, "n": 4000}
    ),
    "primal": Plan(
        (term(d=3), term(d=2), term(n=1, d=2), term(n=1, d=1)),
        _primal_flops,
        _linear_arrays,
        {"n": 8000, "d": 800},
    ),
    "dual": Plan(
        (N3, N2, term(n=2, d=1), term(n=1, d=1)),
        _dual_flops,
        _linear_arrays,
        {"n": 1400, "d": 4000},
    ),
    "linear cg": Plan(
        (term(entries=1), term(n=1)),
        _linear_cg_flops,
        _linear_cg_arrays,
        {"n": 20000},
        is_certain=False,
    ),
}
