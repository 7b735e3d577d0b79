"""Every kernel of the compiled list is complete: oracle, documentation, parameters, derivatives."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from kfu._gram import kernel_table

from kfu.kernels import KERNELS, KernelSpec
from tests.oracles.kernels import ORACLES

DOCUMENT = Path(__file__).parents[2] / "docs" / "kernels.md"


def test_registry_and_oracles_have_the_same_names() -> None:
    assert set(KERNELS) == set(ORACLES)
    assert set(KERNELS) == {row["name"] for row in kernel_table() if not row["is_internal"]}


@pytest.mark.parametrize("name", KERNELS)
def test_the_oracle_takes_the_kernels_parameters(name: str) -> None:
    arguments = list(inspect.signature(ORACLES[name]).parameters)
    assert arguments[2:] == list(KERNELS[name].parameters)


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_is_documented(name: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert f"### {name}\n" in text
    for alias in KERNELS[name].aliases:
        assert f"`{alias}`" in text


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_can_be_made_with_its_defaults(name: str) -> None:
    spec = KernelSpec.make(name)
    assert spec.params == KERNELS[name].parameters
    assert KERNELS[name].formula
