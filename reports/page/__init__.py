"""A static site of everything in the records: it opens from the file system, and asks no network for anything."""
