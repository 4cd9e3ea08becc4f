"""The pipeline: one transformation a module, and the list of all."""
