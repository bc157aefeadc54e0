"""What is asked of events: definitions as plain data, the examples they make, what they may see."""
