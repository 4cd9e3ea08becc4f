"""The commands: one module per command, without logic of its own."""
