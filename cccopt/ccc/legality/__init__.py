"""What must hold for code to be deferred: dependences, live-outs, reductions, memory and its order."""
