"""PostgreSQL as an output: `postgresql://[user:password@]host[:port]/database/[schema.]table`.

The table has a row for each answer, and is made if it is absent. Its key is the id of the answer.
Rows are inserted `on conflict (id) do nothing`, so the table has each answer once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spaseq.connectors.address import Address
from spaseq.connectors.base import NotTaken, Parcel, Refusal
from spaseq.connectors.reconnecting import AsyncSink
from spaseq.errors import InputError, RunError, SpaseqError, UsageError

_TIMEOUT_S = 30.0
_PARAMETERS = ("sslmode", "sslrootcert", "sslcert", "sslkey")
_TABLE = """create table if not exists {} (
    id text primary key,
    query text not null,
    started timestamptz not null,
    ended timestamptz not null,
    answer jsonb not null
)"""
_INSERT = """insert into {} (id, query, started, ended, answer)
select a->>'id', a->>'query', (a->>'start')::timestamptz, (a->>'end')::timestamptz, a
from unnest($1::text[]) with ordinality as given (line, place),
    lateral (select line::jsonb) as parsed (a)
order by place
on conflict (id) do nothing"""

_PASSING = ("08", "40", "53", "55", "57", "58", "25006")
"""Prefixes of SQLSTATE if the database may take the answers later."""

_REFUSING = ("22", "23", "54")
"""Prefixes of SQLSTATE if the database refuses a row because of its values."""

_LOGIN = ("28", "3D")


class PostgresqlSink(AsyncSink):
    """A table that gets each answer once."""

    extra = "postgres"

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        address.check_parameters(_PARAMETERS)
        self._database, mark, table = address.path.partition("/")
        names = table.split(".")
        if not mark or not self._database or not all(names) or len(names) > 2 or "/" in table:
            raise UsageError(f"{address}: give postgresql://HOST/DATABASE/TABLE, or SCHEMA.TABLE")
        self._table = ".".join('"' + name.replace('"', '""') + '"' for name in names)

    async def _send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        """Insert answers; over a new connection, if the kept one is lost."""
        import asyncpg

        is_kept = self._connection is not None and not self._connection.is_closed()
        try:
            if not is_kept:
                self._connection = await self._connected()
            return await self._inserted(parcels)
        except (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.PostgresError) as error:
            if is_kept and self._connection.is_closed():
                return await self._send(parcels)
            raise self._failure(error) from error

    async def _connected(self) -> Any:
        """A connection to a database that has the table."""
        import asyncpg

        try:
            connection = await asyncpg.connect(
                f"postgresql://{self.address.host}/?{self.address.query}",
                user=self.address.user or None,
                password=self.address.password or None,
                database=self._database,
                timeout=_TIMEOUT_S,
                command_timeout=_TIMEOUT_S,
                server_settings={"application_name": "spaseq"},
            )
        except OSError:  # some are also a ValueError
            raise
        except ValueError as error:
            raise UsageError(f"{self.address}: {error}") from None
        # `create table if not exists` needs the right to create, even if the table exists.
        if await connection.fetchval("select to_regclass($1)", self._table) is None:
            await connection.execute(_TABLE.format(self._table))
        return connection

    async def _inserted(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        """Insert answers; one by one, if the database does not take one of them."""
        import asyncpg

        try:
            texts = [parcel.text for parcel in parcels]
            await self._connection.execute(_INSERT.format(self._table), texts)
            return []
        except asyncpg.PostgresError as error:
            if not (error.sqlstate or "").startswith(_REFUSING):
                raise
            if len(parcels) == 1:
                return [Refusal(parcels[0], f"{self.address}: {error}")]
        return [refusal for parcel in parcels for refusal in await self._inserted([parcel])]

    def _failure(self, error: Exception) -> SpaseqError:
        """The error of the run for an error of the library."""
        state = getattr(error, "sqlstate", None) or ""
        said = str(error) or type(error).__name__
        if not state or state.startswith(_PASSING):
            return NotTaken(
                f"{self.address}: no database answers at {self.address.host} ({said}): check the "
                "host and the port, and that the server runs"
            )
        if state.startswith(_LOGIN):
            return InputError(
                f"{self.address}: the server refuses: {said}; the user and the password stand in "
                "the URL, postgresql://USER:PASSWORD@HOST/..."
            )
        return RunError(
            f"{self.address}: {said}; the table needs the columns id (its key), query, started, "
            "ended and answer (docs/live.md)"
        )

    async def _disconnect(self) -> None:
        self._connection.terminate()
