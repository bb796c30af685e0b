"""Configurations, records, predictions, provenance and published numbers."""
