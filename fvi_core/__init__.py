"""Mathematics and training of function-space variational inference. Knows tensors, not data sets, files or tables."""
