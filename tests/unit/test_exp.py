"""The vector exp and tanh against higher precision, on every instruction set of this machine."""

from __future__ import annotations

import numpy as np
import pytest
from kfu._gram import available_simd, vector_exp, vector_tanh

SIMD = available_simd()


def ulps(values: np.ndarray, exact: np.ndarray) -> float:
    """Largest error in units of the last place of the result type."""
    spacing = np.spacing(np.abs(exact).astype(values.dtype)).astype(exact.dtype)
    return float((np.abs(values.astype(exact.dtype) - exact) / spacing).max())


@pytest.mark.parametrize("simd", SIMD)
def test_float32_exp_is_within_two_ulp_wherever_the_result_is_normal(simd: str) -> None:
    dense = np.linspace(-87.33654, 88.72283, 2_000_003)
    small = np.concatenate([sign * np.logspace(-38, 0, 50_001) for sign in (-1, 1)])
    x = np.concatenate([dense, small]).astype(np.float32)
    assert ulps(vector_exp(x, simd), np.exp(x.astype(np.float64))) <= 2.0


@pytest.mark.parametrize("simd", SIMD)
def test_float64_exp_is_within_two_ulp_wherever_the_result_is_normal(simd: str) -> None:
    if np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("this platform has no type wider than float64 to compare with")
    x = np.concatenate([np.linspace(-708.39, 709.78, 500_009), np.linspace(-1, 1, 100_001)])
    assert ulps(vector_exp(x, simd), np.exp(x.astype(np.longdouble))) <= 2.0


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_at_the_ends_of_its_range(simd: str, dtype: type) -> None:
    info = np.finfo(dtype)
    low, high = np.log(np.array([info.tiny, info.max], dtype=np.longdouble))
    x = np.array([-np.inf, -1e30, low - 0.01, 0.0, -0.0, high + 0.01, 1e30, np.inf, np.nan], dtype)
    y = vector_exp(x, simd)
    assert y.tolist()[:-1] == [0.0, 0.0, 0.0, 1.0, 1.0, np.inf, np.inf, np.inf]
    assert np.isnan(y[-1])


@pytest.mark.parametrize("simd", SIMD)
def test_exp_flushes_subnormal_results_to_zero(simd: str) -> None:
    x = np.linspace(-103, -87.34, 1001).astype(np.float32)
    assert not vector_exp(x, simd).any()


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
    long = vector_exp(np.concatenate([x, np.full(64, -1.0)]), simd)
    np.testing.assert_array_equal(vector_exp(x, simd), long[:count])


def test_unknown_instruction_sets_are_named() -> None:
    with pytest.raises(ValueError, match="sse9"):
        vector_exp(np.zeros(1), "sse9")
    missing = {"baseline", "avx2", "avx512"} - set(SIMD)
    for simd in missing:
        with pytest.raises(ValueError, match="instruction set"):
            vector_exp(np.zeros(1), simd)
