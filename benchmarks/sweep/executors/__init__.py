"""Executors: who trains the run groups of a sweep."""
