"""What an audit says: lines at a terminal, JSON for machines, a page that loads nothing."""
