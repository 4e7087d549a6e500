"""What a session taught: from what was said, over a bounded digest and one question, to small changes of a library."""
