"""The crowd: many people with one row each, and nobody whom they must trust (AnonML)."""
