"""The suite: tables, published numbers, the loop that makes runs, metrics, the result store, the command line."""
