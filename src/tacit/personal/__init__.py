"""A person's own data, on her own machine: events, problems, features, models.

Nothing here sends anything anywhere. What leaves goes through a channel, which has a ledger.
"""
