"""Building blocks of cryptography: keystreams, signatures, canonical bytes."""
