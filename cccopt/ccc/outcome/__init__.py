"""What a rewrite answers: refusals, remarks, and what became of each annotation."""
