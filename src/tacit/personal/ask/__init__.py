"""Questions in plain language over one's own events: a grammar, and no model of language."""
