"""Marked loops, the paths in them, and the shapes of control flow around both."""
