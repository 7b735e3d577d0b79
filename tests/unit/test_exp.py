"""The vector 2ˣ and tanh against higher precision, on every instruction set of this machine."""

from __future__ import annotations

import numpy as np
import pytest
from kfu._gram import available_simd, vector_exp2, vector_tanh

SIMD = available_simd()


def ulps(values: np.ndarray, exact: np.ndarray) -> float:
    """Largest error in units of the last place of the result type."""
    spacing = np.spacing(np.abs(exact).astype(values.dtype)).astype(exact.dtype)
    return float((np.abs(values.astype(exact.dtype) - exact) / spacing).max())


@pytest.mark.parametrize("simd", SIMD)
def test_float32_powers_are_within_two_ulp_wherever_the_result_is_normal(simd: str) -> None:
    dense = np.linspace(-126, 0, 2_000_003)
    x = np.concatenate([dense, -np.logspace(-38, 0, 50_001)]).astype(np.float32)
    assert ulps(vector_exp2(x, simd), np.exp2(x.astype(np.float64))) <= 2.0


@pytest.mark.parametrize("simd", SIMD)
def test_float64_powers_are_within_two_ulp_wherever_the_result_is_normal(simd: str) -> None:
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("this platform has no type wider than float64 to compare with")
    x = np.concatenate([np.linspace(-1022, 0, 500_009), np.linspace(-1, 0, 100_001)])
    assert ulps(vector_exp2(x, simd), np.exp2(x.astype(np.longdouble))) <= 2.0


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_at_the_ends_of_the_range(simd: str, dtype: type) -> None:
    low = np.finfo(dtype).minexp
    x = np.array([-np.inf, -1e30, low - 0.01, low, -0.0, 0.0, np.nan], dtype)
    y = vector_exp2(x, simd)
    assert y.tolist()[:-1] == [0.0, 0.0, 0.0, float(np.finfo(dtype).tiny), 1.0, 1.0]
    assert np.isnan(y[-1])


@pytest.mark.skipif("avx512" not in SIMD, reason="this processor has no AVX-512")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_have_the_same_bits_with_and_without_instructions_of_their_own(dtype: type) -> None:
    low = float(np.finfo(dtype).minexp)
    halves = np.arange(low, 0.5, 0.5)  # where rounding to an integer is a tie
    x = np.concatenate([np.linspace(1.1 * low, 0, 1_000_003), halves]).astype(dtype)
    assert vector_exp2(x, "avx512").tobytes() == vector_exp2(x, "avx2").tobytes()


@pytest.mark.parametrize("simd", SIMD)
def test_subnormal_powers_are_flushed_to_zero(simd: str) -> None:
    x = np.linspace(-149, -126.01, 1001).astype(np.float32)
    assert not vector_exp2(x, simd).any()


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tanh_is_accurate_near_zero_and_saturates(simd: str, dtype: type) -> None:
    wide = np.longdouble if dtype is np.float64 else np.float64
    x = np.concatenate(
        [
            np.linspace(-30, 30, 300_001),
            np.logspace(-30, 0, 10_001),
            -np.logspace(-30, 0, 10_001),
        ]
    ).astype(dtype)
    x = x[x != 0]
    assert ulps(vector_tanh(x, simd), np.tanh(x.astype(wide))) <= 4.0
    ends = np.array([0.0, 1e4, -1e4, np.inf, -np.inf, np.nan], dtype)
    y = vector_tanh(ends, simd)
    assert y.tolist()[:-1] == [0.0, 1.0, -1.0, 1.0, -1.0]
    assert np.isnan(y[-1])


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("count", [0, 1, 3, 7, 8, 9, 31])
def test_any_number_of_values(simd: str, count: int) -> None:
    x = np.linspace(-3, 0, max(count, 1))[:count]
    long = vector_exp2(np.concatenate([x, np.full(64, -1.0)]), simd)
    np.testing.assert_array_equal(vector_exp2(x, simd), long[:count])


def test_unknown_instruction_sets_are_named() -> None:
    with pytest.raises(ValueError, match="sse9"):
        vector_exp2(np.zeros(1), "sse9")
    missing = {"baseline", "avx2", "avx512"} - set(SIMD)
    for simd in missing:
        with pytest.raises(ValueError, match="instruction set"):
            vector_exp2(np.zeros(1), simd)
