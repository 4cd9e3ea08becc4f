"""Tables, JSON and figures, made of results as data."""
