"""Counted copies of functions: which counters they have, the code that counts, and the layout of the counts."""
