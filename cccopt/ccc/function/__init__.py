"""A function as passes see it: one body with its analyses, as a graph of blocks, its annotations and its calls."""
