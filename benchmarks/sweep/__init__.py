"""Many runs: what is to do, who does it, how far it has come."""
