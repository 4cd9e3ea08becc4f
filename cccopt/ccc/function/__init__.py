"""A function as passes see it: its body with analyses, its graph of blocks, its annotations and its calls."""
