"""Speed, as ratios against a floor of the same run: ``make bench``, or one row with ``make bench ROW=start``."""
