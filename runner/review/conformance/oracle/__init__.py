"""What every backend must do."""
