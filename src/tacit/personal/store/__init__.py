"""Where a person's events lie: one file, sealed if she likes, changed whole or not at all."""
