"""The pipeline: one module per transformation, and the list of all."""
