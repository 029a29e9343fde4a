"""An algorithm, a backend and an alignment method in one file each: what somebody adds who touches no other
file."""
