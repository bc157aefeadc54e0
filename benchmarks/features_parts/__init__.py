"""The parts of `tacit bench features`."""
