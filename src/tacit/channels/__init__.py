"""Channels: who holds the data, who adds the noise, who sees what."""
