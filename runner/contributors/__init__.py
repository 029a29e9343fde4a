"""Contributors who drop by: their bundles, the closing of the collection, the result that goes back."""
