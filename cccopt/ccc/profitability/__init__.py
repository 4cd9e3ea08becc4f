"""What collecting gains, and which paths are collected for it."""
