"""The parts of `tacit bench crowd`, each with its own peer."""
