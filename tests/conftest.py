"""Options and environment shared by all tests."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# The same examples at every run, so that a failure is the change's; KFU_EXAMPLES=search looks for
# new ones. No deadlines: how long an example takes depends on what else the machine does.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", derandomize=False, deadline=None)
settings.load_profile("search" if os.environ.get("KFU_EXAMPLES") == "search" else "repeatable")


# A shell has the jobs it starts in the background ignore Ctrl-C, and their children inherit that;
# but for this line the commands under test would not hear of theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="run the tests that take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--run-slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: runs with --run-slow"))
