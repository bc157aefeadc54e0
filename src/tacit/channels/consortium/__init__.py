"""The consortium channel: parties average models that each has trained alone."""
