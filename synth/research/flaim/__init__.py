"""AugFLAIM (Oracle): FLAIM's yardstick, which opens true marginals (`docs/design/flaim.md` 2)."""
