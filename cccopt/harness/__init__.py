"""Before and after, measured: workloads, their builds, runs on the emulator or a GPU, and tables of results as data."""
