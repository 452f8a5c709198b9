"""`python -m spaseq`."""

from spaseq.cli import program

program()
