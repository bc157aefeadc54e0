"""Learning for oneself: chosen in the order of time, tested on what came last, kept."""
