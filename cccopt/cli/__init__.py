"""The commands: one module each, no logic of its own."""
