"""What the federation's benchmarks share, and the processes that they start."""
