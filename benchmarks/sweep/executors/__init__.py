"""Executors: who does the jobs of a sweep."""
