"""What is run: tables, published numbers, the runner and its executors, metrics, the result store, the command line."""
