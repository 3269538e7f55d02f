"""Services that come with Evalwright: a generic HTTP fixture, and a fake GitHub on top of it."""
