"""One experiment: data and parts put together, training, predictions, what is measured of them."""
