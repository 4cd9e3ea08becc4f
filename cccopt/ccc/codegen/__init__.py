"""The code of a rewritten loop: votes, pushes and pops, copies that run tasks, the drain."""
