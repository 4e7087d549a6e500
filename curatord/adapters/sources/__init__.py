"""Where transcripts come from: files and databases, read only."""
