"""Where the ``kfu`` program starts: Ctrl-C is answered quietly from the first import on.

While modules are being imported nothing has been written and nothing can be saved, so the process
may end on the spot; ``kfu.cli.main`` takes over before a command runs.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

EXIT_INTERRUPTED = 130


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """SIGINT during imports: one line, no traceback."""
    os.write(2, b"kfu: error: interrupted\n")
    os._exit(EXIT_INTERRUPTED)


def expect_interrupt() -> None:
    """From now on SIGINT is a KeyboardInterrupt again (if ``main`` below had changed that)."""
    if signal.getsignal(signal.SIGINT) is leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    """Run ``kfu`` with the arguments of this process, and exit."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    from kfu.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
