"""One statement of the paper a file."""
