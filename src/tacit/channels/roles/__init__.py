"""What the roles of every channel between several parties are built from."""
