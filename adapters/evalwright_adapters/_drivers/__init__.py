"""The driver that imported suites carry in the hidden directory of each case: programs, never imported here."""
