"""What must hold of every link and calibrator: weights, flips, order of rows, monotony."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.calibration import METHODS, fit_calibrator, fit_isotonic, fit_sigmoid
from kfu.calibration.agreement import GAP, agree
from kfu.pairwise import ovo_code, vote

FITS = [fit_sigmoid, fit_isotonic]
POINTS = np.linspace(-4, 4, 81)


@st.composite
def samples(draw):
    """Outputs with or without ties, separated, mixed, of one side, or against the outcomes."""
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    f = np.round(rng.normal(size=n), draw(st.sampled_from([0, 1, 12])))
    slope = draw(st.sampled_from([-2.0, 0.0, 1.0, 1e3]))
    positive = rng.uniform(size=n) < 1 / (1 + np.exp(-np.clip(slope * f, -700, 700)))
    return f, positive, rng.integers(0, 4, size=n)


@pytest.mark.parametrize("fit", FITS)
@given(samples())
@settings(max_examples=40, deadline=None)
def test_weights_are_copies(fit, sample):
    f, positive, times = sample
    times[0] = max(times[0], 1)
    weighted = fit(f, positive, times)
    copied = fit(np.repeat(f, times), np.repeat(positive, times))
    np.testing.assert_allclose(weighted(POINTS), copied(POINTS), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("fit", FITS)
@given(samples())
@settings(max_examples=40, deadline=None)
def test_flipping_outputs_and_outcomes(fit, sample):
    f, positive, times = sample
    weight = times + 0.5
    plain, flipped = fit(f, positive, weight), fit(-f, ~positive, weight)
    np.testing.assert_allclose(flipped(-POINTS), 1 - plain(POINTS), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("fit", FITS)
@given(samples(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_rows(fit, sample, random):
    f, positive, times = sample
    order = list(range(len(f)))
    random.shuffle(order)
    weight = times + 0.5
    a, b = fit(f, positive, weight), fit(f[order], positive[order], weight[order])
    np.testing.assert_allclose(a(POINTS), b(POINTS), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("fit", FITS)
@given(samples())
@settings(max_examples=40, deadline=None)
def test_links_are_monotone_and_inside(fit, sample):
    f, positive, _ = sample
    link = fit(f, positive)
    p = link(POINTS)
    steps = np.diff(p) if link.is_increasing else -np.diff(p)
    assert (steps >= 0).all()
    seen = link(f)
    assert ((seen > 0) & (seen < 1)).all()
    assert fit is fit_isotonic or np.isfinite([link.A, link.B]).all()
    if fit is fit_isotonic:
        margin = 1 / (len(f) + 2)
        assert p.min() >= margin - 1e-15
        assert p.max() <= 1 - margin + 1e-15


@given(samples())
@settings(max_examples=40, deadline=None)
def test_the_sigmoid_keeps_the_mean_of_the_targets(sample):
    """Stationarity in B, whatever the sample: Σ P = Σ t."""
    f, positive, times = sample
    weight = times + 0.5
    n_positive, n_negative = weight[positive].sum(), weight[~positive].sum()
    t = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    assert weight @ fit_sigmoid(f, positive, weight)(f) == pytest.approx(weight @ t, rel=1e-8)


@given(st.integers(2, 5), st.sampled_from(sorted(METHODS)), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_probabilities_agree_with_votes_and_classes_may_be_renamed(n_classes, method, seed):
    rng = np.random.default_rng(seed)
    code = ovo_code(n_classes)
    labels = rng.permutation(np.arange(60) % n_classes)
    f = np.round(code[labels] + rng.normal(size=(60, code.shape[1])) + rng.normal(), 2)
    p = fit_calibrator(f, labels, code, method).probabilities(f)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert (p >= 0).all()
    winners = vote(f, code)
    assert np.argmax(p, axis=1).tolist() == winners.tolist()
    new = rng.permutation(n_classes)  # class k becomes class new[k]
    renamed_code = np.empty_like(code)
    renamed_code[new] = code
    calibrator = fit_calibrator(f, new[labels], renamed_code, method)
    renamed = calibrator.probabilities(f, new[winners])
    np.testing.assert_allclose(renamed[:, new], p, atol=1e-7)


@given(st.integers(2, 6), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_agreement_moves_nothing_twice(n_classes, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, 0.3), size=20)
    winners = rng.integers(n_classes, size=20)
    once = agree(p, winners)
    assert np.argmax(once, axis=1).tolist() == winners.tolist()
    assert (once >= 0).all()
    np.testing.assert_allclose(once.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(agree(once, winners), once, atol=1e-15)
    own = np.take_along_axis(once, winners[:, None], axis=1)[:, 0]
    np.put_along_axis(once, winners[:, None], -1.0, axis=1)
    assert (own >= once.max(axis=1) + GAP * (1 - 1e-6)).all()
