"""Programs that run beside the code under test, in whatever Python a suite names."""
