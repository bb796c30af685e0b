"""What was run and what came of it: configurations, records, predictions, provenance, published numbers."""
