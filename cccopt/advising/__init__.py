"""Which annotations to write: candidates tried as if they were annotated, ranked, and written into the source."""
