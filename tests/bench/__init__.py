"""Speed, as ratios to a floor and to the peer of the same run: ``make bench``, or one row with ``make bench ROW=P5``."""
