"""A process that logs answers and delivers them, until it has delivered all or is killed.

`python -m tests.runtime.live.killed_deliveries DIRECTORY COUNT NAME=URL...`
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from spaseq import back_off
from spaseq.algebra.answers import Answer
from spaseq.logs.segment_log import SegmentLog
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.deliveries import Deliveries, SinkSettings


def main(directory: Path, count: int, sinks: dict[str, str]) -> None:
    back_off.FIRST_PAUSE, back_off.MOST_PAUSE = 0.05, 0.2
    log = SegmentLog(directory / "answers")
    settings = {name: SinkSettings(to) for name, to in sinks.items()}
    deliveries = Deliveries(directory, log, settings, lambda text: print(text, flush=True))
    while log.end < count:
        some = range(log.end, min(log.end + 7, count))
        log.append([_record(number) for number in some])
        log.commit()
        deliveries.wake()
        time.sleep(0.03)
    while deliveries.next < count:
        time.sleep(0.01)
    deliveries.close(10.0)


def _record(number: int) -> bytes:
    graph = (("<http://e/s>", "<http://e/p>", f'"{number}"'),)
    made = Answer((0, 0), (number, 0), (), (), graph=graph, event=f"http://e/g{number}")
    query, now = f"q{number % 3}", int(time.time() * 1000)
    return LoggedAnswer(query, query, f"{number:032}", made, now).to_bytes()


if __name__ == "__main__":
    given = dict(text.split("=", 1) for text in sys.argv[3:])
    main(Path(sys.argv[1]), int(sys.argv[2]), given)
