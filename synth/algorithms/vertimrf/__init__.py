"""VertiMRF on shares: PrivMRF whose graph takes what depends inside each owner's columns first."""
