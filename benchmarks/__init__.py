"""Side-by-side runs against real peers; see README.md in this folder."""
