"""The process that does one SPARQL update: a line of JSON and N-Triples in, a line of JSON out.

It ends itself if it takes too long, so that nothing is left of a server that was killed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spaseq.algebra.graph_changes import GraphChange
from spaseq.errors import InputError
from spaseq.rdf.terms.term import Triple

LONGEST_S = 30.0
"""Maximum time of an update."""

_LEAST_BYTES = 2**29  # of addresses, which threads take without using them


@dataclass(frozen=True, slots=True)
class BoundedUpdates:
    """Executes updates in a separate process.

    Attributes:
        most_bytes: maximum memory of an update.
        longest_s: its maximum time.
    """

    most_bytes: int
    longest_s: float = LONGEST_S

    def __call__(self, now: Iterable[Triple], text: str, iri: str) -> GraphChange:
        """The change that an update makes, as `graph_updates.updated`.

        Raises:
            InputError: it is no update, or needs more time or memory.
        """
        head = {"text": text, "iri": iri, "memory": self.most_bytes, "seconds": self.longest_s}
        lines = "".join(f"{s} {p} {o} .\n" for s, p, o in now)
        command = [sys.executable, "-m", "spaseq.kb.update_process"]
        given = f"{json.dumps(head)}\n{lines}".encode()
        try:
            done = subprocess.run(command, input=given, capture_output=True, timeout=self.longest_s)
        except subprocess.TimeoutExpired:
            raise InputError(f"the update takes more than {self.longest_s:g} s") from None
        try:
            reply = json.loads(done.stdout)
        except ValueError:
            raise InputError(
                f"the update needs more than {self.most_bytes:,} bytes of memory (max_kb)"
            ) from None
        if "error" in reply:
            raise InputError(reply["error"])
        gone, come = (tuple(map(tuple, reply[name])) for name in ("deleted", "inserted"))
        return GraphChange(gone, come)


def main() -> None:
    """Do the update of standard input."""
    from spaseq.kb.graph_updates import updated_lines

    head, _, lines = sys.stdin.buffer.read().partition(b"\n")
    given = json.loads(head)
    signal.setitimer(signal.ITIMER_REAL, given["seconds"] + 1)
    _limit_memory(given["memory"])
    try:
        change = updated_lines(lines, given["text"], given["iri"])
    except InputError as error:
        print(json.dumps({"error": str(error)}))
    else:
        print(json.dumps({"deleted": change.deleted, "inserted": change.inserted}))


def _limit_memory(size: int) -> None:
    size = max(size, _LEAST_BYTES)
    with suppress(ImportError, ValueError, OSError):
        import resource

        used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + size, used + size))


if __name__ == "__main__":
    main()
