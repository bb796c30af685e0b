"""Verdicts on the papers' claims: by their own printed numbers, and by the records of this project."""
