"""White-box audits: the adversary knows all but one unit, and sees every noisy sum of every round.

The black-box game of `privacy/audit.py` runs one mechanism. These games run whole programs through
whole channels, which is why they stand above them: nothing that makes noise may depend on them.
"""
