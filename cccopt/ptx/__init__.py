"""The PTX language: grammar, IR, parser, printer, verifier, and the instruction table."""
