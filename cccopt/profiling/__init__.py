"""Runs counted by source line: what a run's file holds, where its counts come from, how they are laid out."""
