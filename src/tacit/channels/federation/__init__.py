"""The federation: holders share their sums among servers, who add noise; one decodes (PEM)."""
