"""What a rewrite of one marked loop needs to know before anything moves: contexts, stacks, form."""
