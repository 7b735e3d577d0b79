"""Going on with a path that was stopped: by its limit of steps, by Ctrl-C, or by a kill.

At a breakpoint some row has just changed its state, and rounding decides what it seems to be. So
the path is taken up within its last stretch, where the states of the file give the solution and are
found again; the last breakpoint is then met once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kfu.data import Matrix
from kfu.errors import SettingsError
from kfu.paths.following import FollowOptions, check_track, engine_settings, problem_of
from kfu.paths.path import RegularisationPath
from kfu.paths.path_file import PathFile, PathWriter
from kfu.paths.recording import Recorder
from kfu.paths.replay import joined, shortened
from kfu.solvers.parametric import Track, Watch, follow, solve_states


def resume_path(
    earlier: RegularisationPath,
    found: PathFile,
    output: str,
    options: FollowOptions,
    *,
    watched: tuple[Matrix, np.ndarray] | None = None,
    progress: Callable[[Any], Any] | None = None,
) -> RegularisationPath:
    """Follow `earlier`, read from `found`, to its end; the file becomes `output`.

    A path with validation errors goes on with the same validation rows.
    """
    n_valid = 0 if watched is None else len(watched[1])
    if n_valid != earlier.n_valid:
        raise SettingsError(
            f"{found.name} has errors of {earlier.n_valid} validation rows, and now there are "
            f"{n_valid}; give the same rows with --validate"
        )
    task, definition, before = earlier.task, earlier.definition, earlier.track
    limits = replace(options, ridge=float(earlier.options.get("ridge", 0.0)))
    problem = problem_of(definition, task, limits)
    X, kernel = task.solver_kernel()
    before, t = last_stretch(before)
    beta, _ = solve_states(problem, X, kernel, before.states_at(before.n_steps), t)
    n_before = len(before.t)

    def made(after: Track) -> RegularisationPath:
        track = joined(before, after)
        path = replace(earlier, track=track)
        fresh = replace(earlier, track=after).columns
        n_new = len(track.t) - n_before
        path._columns = {
            name: np.concatenate([column[:n_before], fresh[name][len(fresh[name]) - n_new :]])
            for name, column in earlier.columns.items()
        }
        path._columns["step"] = np.arange(len(track.t))
        return path

    if limits.max_steps:
        limits = replace(limits, max_steps=limits.max_steps + len(earlier) - n_before)
    recorder = Recorder(output, made, progress, PathWriter.go_on(found, output, n_before))
    try:
        after = follow(
            problem,
            X,
            kernel,
            start=t,
            stop=earlier.stop,
            beta=beta,
            labels=definition.signs(task),
            watch=None if watched is None else Watch(*watched),
            settings=engine_settings(limits),
            progress=recorder,
        )
        check_track(after.status, task)
        path = made(after)
        recorder.finish(path)
    except Exception:
        recorder.discard()
        raise
    return path


def last_stretch(track: Track) -> tuple[Track, float]:
    """The track without its last breakpoint, and a t in the middle of the stretch before it.

    A track of one breakpoint is taken up there.
    """
    k = track.n_steps
    while k > 0 and track.t[k - 1] == track.t[k]:
        k -= 1
    if k == 0:
        return shortened(track, 1), float(track.t[0])
    return shortened(track, k), 0.5 * float(track.t[k - 1] + track.t[k])
