"""Spark sessions, the Java they run on, and the processes they start."""

SHIPPED = "SPASEQ_SHIPPED"
"""The environment variable with the digest of a shipped package."""

KERNELS_NAME = "compiled_kernels"
"""The directory of compiled kernels within the shipped package."""

FILE_TASKS = "SPASEQ_FILE_TASKS"
"""The environment variable of workers that run `FileTasks`, with the mode of their kernels.

They load no pandas, and load kernels that do not read text at the first call.
"""
