"""Judges under fire: a scripted HTTP server, hostile bodies, and the page that says what became of them."""
