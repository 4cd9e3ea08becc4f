"""What data-flow analysis tells of a function: control flow, dominators, liveness, loops, uniformity, addresses."""
