"""Settings of the recipes beside those of the papers and of the authors' code, and the pages that list them."""
