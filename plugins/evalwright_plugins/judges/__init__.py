"""Judges that ship with Evalwright: transport to a model, a command, a recording or several of them."""
