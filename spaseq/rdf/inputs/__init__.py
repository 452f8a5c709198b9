"""Input files, formats, stream options and reports of bad input."""
