"""Counted copies of functions: which counters there are, the code that counts, and the layout of the counts."""
