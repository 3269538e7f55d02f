"""How it is shown: text, markdown, JSON, JUnit, SARIF, annotations, pictures."""
