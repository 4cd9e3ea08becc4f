"""The rewrite itself (CCC): how a marked loop is found, checked, planned and rewritten."""
