"""Split learning: two owners train the two halves of one network over their session."""
