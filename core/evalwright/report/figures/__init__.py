"""What is reckoned from trials: rates of arms, differences, bands, gates, failures put together."""
