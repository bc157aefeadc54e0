"""What several benchmarks measure alike."""
