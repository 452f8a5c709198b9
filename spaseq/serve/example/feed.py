"""Four sensors report speeds, now and then a jam: appends events to streams/*.nq until Ctrl-C."""

import random
import time
from datetime import UTC, datetime
from pathlib import Path

REPORT = "http://traffic.example/report/"
QUADS = """\
<{g}> <http://www.w3.org/ns/sosa/madeBySensor> <http://traffic.example/sensor/0-{n}> <{g}> .
<{g}> <http://traffic.example/ns#avgSpeed> "{speed}"^^<{xsd}integer> <{g}> .
<{g}> <http://traffic.example/ns#vehicleCount> "{vehicles}"^^<{xsd}integer> <{g}> .
<{g}> <http://www.w3.org/ns/prov#generatedAtTime> "{now}"^^<{xsd}dateTime> .
"""


def main() -> None:
    """Append a report of each sensor each second, all four with the same time."""
    jam = 0
    while True:
        jam = random.randint(5, 10) if not jam and random.random() < 0.1 else max(0, jam - 1)
        now = datetime.now(UTC)
        for n in (1, 2, 3, 4):
            speed = random.randint(5, 11) if jam else random.randint(25, 50)
            name = f"{REPORT}{n}-{now.timestamp():.0f}"
            text = QUADS.format(
                g=name,
                n=n,
                speed=speed,
                vehicles=random.randint(15, 40),
                now=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                xsd="http://www.w3.org/2001/XMLSchema#",
            )
            path = Path(__file__).parent / "streams" / f"sensor-{n}.nq"
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
        time.sleep(1)


if __name__ == "__main__":
    main()
