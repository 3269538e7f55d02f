"""What runs inside the guest: its first program and its agent. Shipped as files, standard library only."""
