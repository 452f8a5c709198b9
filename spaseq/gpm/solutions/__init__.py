"""Solution sequences as columns of codes, and the operators on them."""
