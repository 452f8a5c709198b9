"""The options of `spaseq run` that say how SPARQL endpoints are asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

import click

from spaseq.cli.durations import DURATION
from spaseq.options import ServiceOptions

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--kb-required",
        is_flag=True,
        help="Stop if an endpoint does not answer; otherwise its part of a pattern has no solution "
        "for the events in question, which go to --bad.",
    ),
    click.option(
        "--service-timeout",
        type=DURATION,
        default="10 SECONDS",
        show_default=True,
        help="How long an endpoint may take for one request.",
    ),
    click.option(
        "--service-retries",
        type=click.IntRange(0),
        default=ServiceOptions().retries,
        show_default=True,
        metavar="N",
        help="How often a request that failed is sent again, after 0.5 s, 1 s, 2 s ...",
    ),
    click.option(
        "--service-batch",
        type=click.IntRange(1),
        default=ServiceOptions().batch,
        show_default=True,
        metavar="N",
        help="How many solutions one request asks for at most.",
    ),
    click.option(
        "--service-cache",
        type=click.IntRange(0),
        default=ServiceOptions().cache,
        show_default=True,
        metavar="N",
        help="For how many solutions a process keeps what endpoints answered.",
    ),
    click.option(
        "--service-ttl",
        type=DURATION,
        default="5 MINUTES",
        show_default=True,
        help="How long it keeps an answer.",
    ),
)


def service_options(command: F) -> F:
    """Give a command these options; it is called with one argument `services` for all of them."""

    def call(
        *args: Any,
        kb_required: bool,
        service_timeout: int,
        service_retries: int,
        service_batch: int,
        service_cache: int,
        service_ttl: int,
        **kwargs: Any,
    ) -> Any:
        services = ServiceOptions(
            timeout_s=service_timeout / 1000,
            retries=service_retries,
            batch=service_batch,
            cache=service_cache,
            ttl_s=service_ttl / 1000,
            required=kb_required,
        )
        return command(*args, services=services, **kwargs)

    wrapped: Any = update_wrapper(call, command)
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    found: F = wrapped
    return found
