"""What is under way or left behind, in the state folder: claims, failures, checkpoints, kept parameters."""
