"""One module per verb; each is imported only when its verb is called and offers ``answer(session)``."""
