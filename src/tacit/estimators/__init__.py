"""Estimators: programs run through the central channel, with scikit-learn's manners."""
