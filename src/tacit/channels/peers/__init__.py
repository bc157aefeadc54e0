"""The peers channel: a network without a centre, whose groups aggregate as consortia do."""
