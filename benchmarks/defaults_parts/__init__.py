"""What `tacit bench defaults` is made of."""
