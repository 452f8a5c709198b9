"""What an idle server costs: 1,000 absence queries on four silent streams, with open windows.

    python benchmarks/silence.py [SECONDS]

Prints the share of a core that the server takes, and the bytes of log that it writes in an hour.
"""

from __future__ import annotations

import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from served import served

QUERIES = 1000
_TICKS = 100  # of /proc, in a second

_QUERY = """PREFIX : <http://e/>
SELECT ?d WITHIN {hours} HOURS PARTITION BY ?d FROM STREAM S <http://e/S{stream}>
WHERE {{ SEQ(H; N!)
  DEFINE GPM H ON S {{ ?d :beat{n} ?x }}
  DEFINE GPM N ON S {{ ?d :beat{n} ?y }} }}"""


def _cpu(pid: int) -> float:
    """Seconds of CPU time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _written(data: Path) -> int:
    return sum(path.stat().st_size for path in (data / "streams").rglob("*.log"))


def main(seconds: float) -> None:
    """Measure a server for some seconds."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "queries").mkdir()
        for n in range(QUERIES):
            text = _QUERY.format(hours=1 + n % 20, stream=n % 4, n=n)
            (root / "queries" / f"q{n}.rq").write_text(text)
        streams = "".join(
            f'[streams.S{n}]\niri = "http://e/S{n}"\ntime = "arrival"\n' for n in range(4)
        )
        (root / "c.toml").write_text(f'[queries]\ndirectory = "queries"\n{streams}')
        with served(root / "c.toml") as (process, url):
            _wait_for_queries(url)
            _beat(url)
            _wait_for_save(root / "state")
            cpu, size = _cpu(process), _written(root / "state")
            time.sleep(seconds)
            share = (_cpu(process) - cpu) / seconds
            growth = (_written(root / "state") - size) / seconds * 3600
            print(f"{100 * share:.2f} % of a core; {growth / 1e6:.2f} MB of log an hour")


def _wait_for_queries(url: str) -> None:
    """Wait until the last query of the directory runs."""
    last = max(f"q{n}" for n in range(QUERIES))
    while True:
        try:
            urllib.request.urlopen(f"{url}/queries/{last}", timeout=60).read()
        except urllib.error.HTTPError:
            time.sleep(1)
        else:
            return


def _wait_for_save(data: Path) -> None:
    """Wait until the server has saved its state once more; then it does so seldom."""
    begun = time.time()
    while not any(path.stat().st_mtime > begun for path in data.rglob("state")):
        time.sleep(1)
    time.sleep(5)


def _beat(url: str) -> None:
    """An event for each query, so that each has a window that is open."""
    for stream in range(4):
        lines = [
            f'<http://e/d> <http://e/beat{n}> "1" <http://e/g{n}> .'
            for n in range(QUERIES)
            if n % 4 == stream
        ]
        request = urllib.request.Request(
            f"{url}/streams/S{stream}",
            "\n".join(lines).encode(),
            {"Content-Type": "application/n-quads"},
        )
        urllib.request.urlopen(request, timeout=60).read()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
