"""Processes of our own that do work side by side: calls in fresh processes, a queue of them, a GPU for each."""
