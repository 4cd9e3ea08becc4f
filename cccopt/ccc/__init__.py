"""The rewrite itself (CCC): what is found, allowed, planned and made of a marked loop."""
