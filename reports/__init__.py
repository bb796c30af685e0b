"""From records to Markdown, LaTeX and figures. Reads, never trains: nothing here imports torch."""
