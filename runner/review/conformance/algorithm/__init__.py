"""What every algorithm must do."""
