"""How the session of this package is set up."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spaseq.runtime.spark.session import spark_session
from spaseq.runtime.spark.session.spark_session import unix_sockets

_SETTING = "spark.python.unix.domain.socket"


@pytest.mark.spark
def test_java_and_workers_talk_through_sockets_that_no_other_user_reaches(spark: Any) -> None:
    settings = spark.sparkContext.getConf()
    assert settings.get(f"{_SETTING}.enabled") == "true"
    spark.sparkContext.parallelize([1], 1).map(str).collect()
    directory = Path(settings.get(f"{_SETTING}.dir"))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert any(path.is_socket() for path in directory.iterdir())


def test_there_are_none_if_their_paths_would_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "_sockets", lambda: SimpleNamespace(name="/" + 60 * "d"))
    assert unix_sockets() == {}
