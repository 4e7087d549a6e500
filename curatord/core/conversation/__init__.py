"""What was said in the sessions of each host: its records into `Said`, one module a host."""
