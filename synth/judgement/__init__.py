"""What is a result worth, and is its promise one? Functions of what has been released and of public numbers
only."""
