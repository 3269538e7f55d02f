"""The sandbox ``vm`` and the verb that builds its images."""
