"""Prompt files, one a task; the configuration's `prompts` folder may hold others in their place."""
