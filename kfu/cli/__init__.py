"""The command line. It imports the library; nothing in the library imports it."""
