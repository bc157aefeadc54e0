"""The wire: signed messages over pinned TLS. It knows neither programs nor noise."""
