"""State folder: claims, failures, checkpoints, predictions and trained parameters."""
