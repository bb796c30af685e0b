"""For those who work on this project: a toy cluster, what training steps cost."""
