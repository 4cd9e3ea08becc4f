"""What a rewrite reports: refusals, remarks, and what became of each annotation."""
