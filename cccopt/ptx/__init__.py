"""The language: grammar, IR, parser, printer, verifier, and the one table of instructions."""
