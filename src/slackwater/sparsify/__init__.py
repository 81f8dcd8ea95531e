"""From a dense kernel predictor to a small one: published algorithms, one per file, and the driver that runs them."""
