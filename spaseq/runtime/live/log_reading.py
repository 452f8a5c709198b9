"""How far the engine of a live run has read the logs of its streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spaseq.logs.stream_log import Entry, StreamLog


class LogReading:
    """Reads what the logs of all streams have, each from a place on."""

    def __init__(self, logs: Mapping[str, StreamLog], places: Mapping[str, int]) -> None:
        """`places` are those to begin at, by stream IRI; 0 where there is none."""
        self._logs = logs
        self._readers = {iri: log.reader(places.get(iri, 0)) for iri, log in logs.items()}

    @property
    def places(self) -> dict[str, int]:
        """The record of each log that is read next."""
        return {iri: reader.next for iri, reader in self._readers.items()}

    def ends(self) -> dict[str, int]:
        """The record of each log that will be written next."""
        return {iri: log.log.end for iri, log in self._logs.items()}

    def lag(self, iri: str) -> int:
        """How many records of a stream's log have not been read."""
        return self._logs[iri].log.end - self._readers[iri].next

    def waits(self, ends: Mapping[str, int] | None = None) -> bool:
        """Whether the logs have not been read to their ends, or to other ones."""
        given = self.ends() if ends is None else ends
        return any(self._readers[iri].next < end for iri, end in given.items())

    def entries(
        self, most_bytes: int, until: Mapping[str, int] | None
    ) -> Iterator[tuple[str, list[Entry]]]:
        """(stream, its next entries) of about `most_bytes`, where there are some.

        With `until`, no log is read beyond its place there.
        """
        for iri, reader in self._readers.items():
            end = None if until is None else until.get(iri, reader.next)
            entries = reader.read(most_bytes, end)
            if entries:
                yield iri, entries

    def close(self) -> None:
        """Close the files that are read."""
        for reader in self._readers.values():
            reader.close()
