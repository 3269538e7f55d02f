"""A fake GitHub: the REST calls, and the few of GraphQL, by which agents triage, review, change and merge."""
