"""`python -m spaseq`."""

from spaseq.cli import main

main()
