"""Before/after measurements: workloads, their builds, runs on the emulator or a GPU, and tables of results as data."""
