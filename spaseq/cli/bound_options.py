"""The options of what a run may ask of endpoints, and of what input and queries may cost."""

from __future__ import annotations

from spaseq.cli.option_groups import OptionGroup, PartOption, count
from spaseq.cli.option_values import SECONDS
from spaseq.limits import Limits
from spaseq.options import ServiceOptions, StageOptions, StateLimits

ENDPOINTS = OptionGroup(
    "Endpoints",
    (
        PartOption(
            ServiceOptions,
            "--kb-required",
            field="required",
            is_flag=True,
            help="Stop if an endpoint does not answer; otherwise its part of a pattern has no "
            "solution for the events in question, which go to --bad.",
        ),
        PartOption(
            ServiceOptions,
            "--service-timeout",
            field="timeout_s",
            type=SECONDS,
            default="10 SECONDS",
            show_default=True,
            help="How long an endpoint may take for one request.",
        ),
        count(
            ServiceOptions,
            "--service-retries",
            field="retries",
            least=0,
            show_default=True,
            help="How often a request that failed is sent again, after 0.5 s, 1 s, 2 s ...",
        ),
        count(
            ServiceOptions,
            "--service-batch",
            field="batch",
            show_default=True,
            help="How many solutions one request asks for at most.",
        ),
        count(
            ServiceOptions,
            "--service-cache",
            field="cache",
            least=0,
            show_default=True,
            help="For how many solutions a process keeps what endpoints answered.",
        ),
        PartOption(
            ServiceOptions,
            "--service-ttl",
            field="ttl_s",
            type=SECONDS,
            default="5 MINUTES",
            show_default=True,
            help="How long a process keeps an answer.",
        ),
        count(
            ServiceOptions,
            "--service-max-bytes",
            field="max_bytes",
            show_default=True,
            help="The bytes that an endpoint's answer may have, unpacked.",
        ),
        PartOption(
            ServiceOptions,
            "--service-allow",
            field="allow",
            multiple=True,
            metavar="HOST[:PORT]",
            help="A host that SERVICE may ask, besides the hosts of endpoints that --kb names; "
            "without a port, on all ports. Repeatable.",
        ),
    ),
)

LIMITS = OptionGroup(
    "Limits",
    (
        count(
            StageOptions,
            "--limit-per-event",
            help="At most N answers of one query that end at the same instant (and lie in the same "
            "partition); the summary and --stats say how many others there are.",
        ),
        count(
            StateLimits,
            "--max-state-rows",
            field="rows",
            show_default=True,
            help="With --follow: the partial matches that one of a query's buckets may keep "
            "waiting.",
        ),
        count(
            StateLimits,
            "--max-state-bytes",
            field="bytes",
            show_default=True,
            help="With --follow: the bytes of state that one of a query's buckets may have.",
        ),
        count(
            Limits,
            "--max-nesting",
            field="nesting",
            show_default=True,
            help="How deep triple terms, lists, JSON-LD and RDF/XML may be nested.",
        ),
        count(
            Limits,
            "--max-line",
            field="line_bytes",
            show_default=True,
            help="The bytes that a line of N-Quads or N-Triples may have.",
        ),
        count(
            Limits,
            "--max-event",
            field="event_bytes",
            show_default=True,
            help="The bytes that an event may have, and input in which no event ends.",
        ),
        count(
            Limits,
            "--max-literal",
            field="literal_bytes",
            show_default=True,
            help="The bytes that a literal may have, read or computed.",
        ),
        count(
            Limits,
            "--max-inflation",
            field="inflation",
            show_default=True,
            help="How many times as large as its file a .gz may be when unpacked.",
        ),
        count(
            Limits,
            "--max-solutions",
            field="solutions",
            show_default=True,
            help="The solutions that a graph pattern may have for one event, on the way too.",
        ),
        PartOption(
            Limits,
            "--timeout",
            field="timeout_s",
            type=SECONDS,
            default="60 SECONDS",
            show_default=True,
            help="How long one query may take for one event.",
        ),
    ),
)
