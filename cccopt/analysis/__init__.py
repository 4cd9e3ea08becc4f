"""What data-flow analysis says about a function: control flow, dominators, liveness, loops, uniformity, addresses."""
