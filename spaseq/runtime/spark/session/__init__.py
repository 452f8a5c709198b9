"""Spark sessions, the Java they run on, and the processes they start."""

SHIPPED = "SPASEQ_SHIPPED"
"""The environment variable with the digest of a shipped package."""

KERNELS_NAME = "compiled_kernels"
"""The directory of compiled kernels within the shipped package."""

SMALL = "SPASEQ_SMALL_TASKS"
"""The environment variable of workers for little input: they load neither kernels nor pandas."""
