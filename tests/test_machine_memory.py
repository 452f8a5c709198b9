"""What memory a container leaves to a process."""

from __future__ import annotations

from pathlib import Path

from spaseq.memory import machine_memory


def test_a_container_has_less_than_the_machine(tmp_path: Path) -> None:
    assert machine_memory(tmp_path / "none") >= 2**28
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_memory(tmp_path) == machine_memory(tmp_path / "none")
    old = tmp_path / "old"
    (old / "memory").mkdir(parents=True)
    (old / "memory" / "memory.limit_in_bytes").write_text("300000000\n")
    assert machine_memory(old) == 300_000_000
