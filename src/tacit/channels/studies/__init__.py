"""Studies: what several holders agree to learn together, in one signed file."""
