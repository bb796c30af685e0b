"""Static site of all records; it opens from the file system and needs no network."""
