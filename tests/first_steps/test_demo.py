"""`spaseq demo`: the alerts of the case card-fraud, from files that come with the package."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from spaseq.cli.demo import DEMO, KB, STREAMS, alerts
from spaseq.cli.main import main

CASE = Path(__file__).parents[2] / "streams/card-fraud"


def test_its_files_are_those_of_the_case() -> None:
    for name in ("query.rq", *STREAMS.values(), *KB.values()):
        data = (DEMO / name).read_bytes()
        plain = gzip.decompress(data) if name.endswith(".gz") else data
        assert plain == (CASE / name.removesuffix(".gz")).read_bytes()


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_its_alerts_are_those_of_the_case(runtime: str) -> None:
    lines = (CASE / "answers.jsonl").read_text().splitlines()
    expected = [json.loads(line) for line in lines]
    found = [alert.splitlines() for alert in alerts(runtime)]  # type: ignore[arg-type]
    assert len(found) == len(expected)
    for (head, payments), answer in zip(found, expected, strict=True):
        bindings = {name: term["value"] for name, term in answer["bindings"].items()}
        assert head.startswith(f"{bindings['holder']}, {bindings['bankName']}, ")
        assert head.endswith(f"{answer['start'][11:19]} to {answer['end'][11:19]}")
        steps, amounts = payments.split()[::2], payments.split()[1::2]
        assert steps == [item["gpm"] for item in answer["trace"]]
        assert (amounts[0], amounts[-1]) == (bindings["first"], bindings["small"])


def test_the_command_writes_what_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as done:
        main(["demo", str(tmp_path / "demo"), "--all"])
    said = capsys.readouterr().out
    assert (done.value.code, said.count(" to 1")) == (0, 19)
    (run,) = [line.split()[1:] for line in said.splitlines() if line.startswith("  spaseq run")]
    with pytest.raises(SystemExit):
        main(run)
    assert len(capsys.readouterr().out.splitlines()) == 20
