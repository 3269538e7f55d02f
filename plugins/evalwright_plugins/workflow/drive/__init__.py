"""One step after another: what is checked before it and after it, what is asked of people, and how a run goes on."""
